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

// Presets returns all presets, in the order in which they teach. The page shows the first
// one to begin with. The caller must not change them.
var Presets = sync.OnceValue(func() (all []api.PlayPreset) {
	if err := json.Unmarshal(presetText, &all); err != nil {
		panic(fmt.Sprintf("playground: presets.json: %v", err)) // a test reads it
	}
	return all
})
