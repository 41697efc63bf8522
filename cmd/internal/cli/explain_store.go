// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/redisstore"
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
	case c.store.Redis != "":
		s, err = showRedis(ctx, s, c.store.Redis, now)
	case c.store.Postgres != "":
		s, err = showPostgres(ctx, s, c.store.Postgres, now)
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

func showRedis(ctx context.Context, s shownStore, url string, now func() bucket.Instant) (shownStore, error) {
	options, config, err := redisstore.ParseURL(url)
	if err != nil {
		return s, err
	}
	config.Now = now
	client, store, err := dialRedis(ctx, options, config)
	if err != nil {
		return s, err
	}
	s.Store, s.close = store, func() {
		store.Close()
		client.Close()
	}
	return s, nil
}

func showPostgres(ctx context.Context, s shownStore, url string, now func() bucket.Instant) (shownStore, error) {
	options, config, err := pgstore.ParseURL(url)
	if err != nil {
		return s, err
	}
	config.Now, config.SweepEvery = now, -1
	pool, err := pgstore.Dial(ctx, options)
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
