// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/pgstore"
)

// A shownStore is a store that is only looked at.
type shownStore struct {
	mete.Store
	local *memstore.Store // for rules that say local: all its buckets are full
	close func()
}

// openStore opens what --store names. Nothing is made or changed there.
func (c *explainCommand) openStore(ctx context.Context, now func() bucket.Instant) (s shownStore, err error) {
	s.close = func() {}
	if s.local, err = memstore.New(memstore.Config{Now: now}); err != nil {
		return s, err
	}
	switch {
	case c.store == nil:
		s.Store, err = memstore.New(memstore.Config{Now: now})
	case c.store.Scheme == storeurl.Redis:
		s, err = showRedis(ctx, s, c.store, now)
	case c.store.Scheme == storeurl.Postgres:
		s, err = showPostgres(ctx, s, c.store, now)
	case c.store.File != "":
		config := c.store.Memory
		config.Now = now
		s.Store, err = memstore.Restore(c.store.File, config)
	default:
		s.Store, err = memstore.New(memstore.Config{Now: now})
	}
	s.Store = patient{s.Store}
	return s, err
}

func showRedis(ctx context.Context, s shownStore, u *storeurl.URL, now func() bucket.Instant) (shownStore, error) {
	config := u.Redis.Config
	config.Now = now
	client, store, err := dialRedis(ctx, u.Redis.Options, config)
	if err != nil {
		return s, err
	}
	s.Store, s.close = store, func() {
		store.Close()
		client.Close()
	}
	return s, nil
}

func showPostgres(ctx context.Context, s shownStore, u *storeurl.URL, now func() bucket.Instant) (shownStore, error) {
	config := u.Postgres.Config
	config.Now, config.SweepEvery = now, -1
	pool, err := pgstore.Dial(ctx, u.Postgres.Options)
	if err != nil {
		return s, err
	}
	store, err := pgstore.New(pool, config)
	if err != nil {
		pool.Close()
		return s, err
	}
	s.Store, s.close = store, func() {
		store.Close()
		pool.Close()
	}
	return s, nil
}
