// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"context"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/internal/usagetest"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/storetest"
)

// newPool connects to a server that tests share.
func newPool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return poolTo(t, proctest.PostgresURL(t))
}

func poolTo(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// migrated returns a new schema with all tables.
func migrated(t testing.TB, pool *pgxpool.Pool) string {
	t.Helper()
	name := proctest.PostgresSchema(t)
	if err := pgstore.Migrate(context.Background(), pool, name); err != nil {
		t.Fatal(err)
	}
	return name
}

func open(t testing.TB, pool *pgxpool.Pool, config pgstore.Config) *pgstore.Store {
	t.Helper()
	s, err := pgstore.New(pool, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestStore uses a separate prefix per store in one schema. A durable table has the same functions.
func TestStore(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]struct {
		config pgstore.Config
		run    func(*testing.T, storetest.Open)
	}{
		"unlogged": {pgstore.Config{}, storetest.Run},
		"durable":  {pgstore.Config{Durable: true}, storetest.RunBriefly},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, config := newPool(t), kind.config
			config.Schema = migrated(t, pool)
			prefix := prefixes()
			kind.run(t, func(t *testing.T, now func() bucket.Instant) mete.Store {
				config := config
				config.Now, config.Prefix, config.Timeout = now, prefix(), awhile
				return open(t, pool, config)
			})
		})
	}
}

// prefixes returns a function that returns a new prefix each time.
func prefixes() func() string {
	var mu sync.Mutex
	n := 0
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		n++
		return string(rune('a'+n%26)) + string(rune('a'+n/26%26)) + string(rune('a'+n/676)) + ":"
	}
}

func TestStore_Families(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]pgstore.Config{"unlogged": {}, "durable": {Durable: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := newPool(t)
			config.Schema = migrated(t, pool)
			prefix := prefixes()
			storetest.RunFamilies(t, func(t *testing.T, now func() bucket.Instant) mete.Store {
				config := config
				config.Now, config.Prefix, config.Timeout = now, prefix(), awhile
				return open(t, pool, config)
			})
		})
	}
}

func TestHolds(t *testing.T) {
	for name, config := range map[string]pgstore.Config{"unlogged": {}, "durable": {Durable: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := newPool(t)
			config.Schema = migrated(t, pool)
			prefix := prefixes()
			open := func(t *testing.T, now func() bucket.Instant) mete.Store {
				config := config
				config.Now, config.Prefix, config.Timeout = now, prefix(), awhile
				return open(t, pool, config)
			}
			storetest.RunHoldsBriefly(t, open)
			t.Run("by usage", func(t *testing.T) { usagetest.Run(t, open) })
		})
	}
}
