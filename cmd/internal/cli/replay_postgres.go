// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/pgstore"
)

// openPostgres returns a store in the PostgreSQL that a URL names, under a prefix of
// its own. The schema may be in use; where there is none it is made, and stays.
func openPostgres(ctx context.Context, u *storeurl.URL, now func() bucket.Instant) (s replayStore, err error) {
	config := u.Postgres.Config
	if config.Timeout == 0 {
		config.Timeout = replayCall
	}
	config.Now, config.Prefix = now, ownPrefix(config.Prefix)
	pool, err := pgstore.Dial(ctx, u.Postgres.Options)
	if err != nil {
		return s, err
	}
	store, err := migrated(ctx, pool, config)
	if err != nil {
		pool.Close()
		return s, err
	}
	s.Store = store
	s.end = func(ctx context.Context) error {
		defer pool.Close()
		store.Close()
		if err := store.Clear(ctx); err != nil {
			return fmt.Errorf("buckets whose keys begin with %s are left in PostgreSQL until a server sweeps them, after an hour: %w", config.Prefix, err)
		}
		return nil
	}
	return s, nil
}

// migrated returns a store over pool, having made what it needs.
func migrated(ctx context.Context, pool *pgxpool.Pool, config pgstore.Config) (*pgstore.Store, error) {
	if err := pgstore.Migrate(ctx, pool, config.Schema); err != nil {
		return nil, err
	}
	return pgstore.New(pool, config)
}
