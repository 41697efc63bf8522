// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/stores"
	"github.com/metehq/mete/memstore"
)

// A shownStore is a store whose buckets an explanation reads.
type shownStore struct {
	mete.Store
	local *memstore.Store // for rules that say local: all its buckets are full
	close func() error
}

// openStore opens the store of --store. Nothing is made or changed there.
func (c *explainCommand) openStore(ctx context.Context, now func() bucket.Instant) (s shownStore, err error) {
	if s.local, err = memstore.New(memstore.Config{Now: now}); err != nil {
		return s, err
	}
	if c.store == nil {
		full, err := memstore.New(memstore.Config{Now: now})
		s.Store, s.close = patient{full}, func() error { return nil }
		return s, err
	}
	opened, _, err := stores.Open(ctx, c.store, stores.Options{Now: now, ReadOnly: true})
	if err != nil {
		return s, err
	}
	s.Store, s.close = patient{opened}, opened.Close
	return s, nil
}
