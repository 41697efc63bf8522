// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/memstore"
)

// openStore opens the store that a URL names.
func openStore(raw string) (mete.Store, error) {
	c, err := storeurl.Parse(raw)
	if err != nil {
		return nil, err
	}
	store, err := memstore.New(c)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return store, nil
}
