// SPDX-License-Identifier: Apache-2.0

package loadtest

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/redisstore"
	"github.com/metehq/mete/store"
)

// A storeTarget is a store that is asked directly, without a policy.
type storeTarget struct {
	store.Store
	limit  bucket.Limit
	prefix string // of all keys, with the store's own
	end    func()
	calls  sync.Pool // of *call
}

// A call is the memory of one decision.
type call struct {
	charges   [1]store.Charge
	snapshots []bucket.Snapshot
}

// openStore opens the store at a URL. All keys begin with a name of the run's own.
func openStore(ctx context.Context, o Options) (*storeTarget, error) {
	u, err := storeurl.Parse(o.Target)
	if err != nil {
		return nil, err
	}
	limit, err := o.limit()
	if err != nil {
		return nil, err
	}
	t := &storeTarget{limit: limit, end: func() {}}
	t.calls.New = func() any { return new(call) }
	name := ownName() + ":"
	switch {
	case u.Redis != "":
		t.prefix, err = t.openRedis(ctx, u.Redis, name)
	case u.Postgres != "":
		t.prefix, err = t.openPostgres(ctx, u.Postgres, name)
	default:
		t.Store, err = memstore.New(u.Memory) // a file has no part in it
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

func (t *storeTarget) openRedis(ctx context.Context, url, name string) (prefix string, err error) {
	options, config, err := redisstore.ParseURL(url)
	if err != nil {
		return "", err
	}
	if config.Prefix == "" {
		config.Prefix = redisstore.DefaultPrefix
	}
	config.Prefix += name
	client, err := redisstore.Dial(ctx, options)
	if err != nil {
		return "", err
	}
	s, err := redisstore.New(client, config)
	if err != nil {
		client.Close()
		return "", err
	}
	t.Store, t.end = s, func() {
		s.Close()
		client.Close()
	}
	return config.Prefix, nil
}

func (t *storeTarget) openPostgres(ctx context.Context, url, name string) (prefix string, err error) {
	options, config, err := pgstore.ParseURL(url)
	if err != nil {
		return "", err
	}
	config.Prefix += name
	pool, err := pgstore.Dial(ctx, options)
	if err != nil {
		return "", err
	}
	s, err := func() (*pgstore.Store, error) {
		if err := pgstore.Migrate(ctx, pool, config.Schema); err != nil {
			return nil, err
		}
		return pgstore.New(pool, config)
	}()
	if err != nil {
		pool.Close()
		return "", err
	}
	t.Store, t.end = s, func() {
		s.Close()
		pool.Close()
	}
	return config.Prefix, nil
}

func keyText(key int) string { return fmt.Sprintf("key=%07d", key) }

func (t *storeTarget) take(ctx context.Context, key int) (allowed bool, err error) {
	c := t.calls.Get().(*call)
	defer t.calls.Put(c)
	c.charges[0] = store.Charge{Key: keyText(key), Limit: t.limit, Cost: bucket.Token}
	c.snapshots, allowed, err = t.Store.Take(ctx, c.snapshots[:0], c.charges[:], store.Mode{})
	return allowed, err
}

// close resets the keys that were used: a store has no row of a full bucket.
func (t *storeTarget) close(ctx context.Context, used *keySet) error {
	defer t.end()
	if t.prefix == "" { // in memory
		return nil
	}
	var keys []string
	used.each(func(key int) { keys = append(keys, keyText(key)) })
	for some := range slices.Chunk(keys, store.MaxCharges) {
		if err := t.Reset(ctx, some); err != nil {
			return fmt.Errorf("keys that begin with %s are left until they expire: %w", t.prefix, err)
		}
	}
	return nil
}

func (t *storeTarget) note() string {
	if t.prefix == "" {
		return "the store is in the memory of this process"
	}
	return fmt.Sprintf("this loads the store for all its users; keys begin with %s and are removed at the end", t.prefix)
}
