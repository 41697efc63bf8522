// SPDX-License-Identifier: Apache-2.0

package playground

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/metehq/mete/api"
)

//go:embed presets.json
var presetText []byte

// Presets returns all presets in their order on the page, which starts with the first one. Callers must not change
// them.
var Presets = sync.OnceValue(func() (all []api.PlayPreset) {
	if err := json.Unmarshal(presetText, &all); err != nil {
		panic(fmt.Sprintf("playground: presets.json: %v", err)) // tests read the file
	}
	return all
})
