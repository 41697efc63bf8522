// SPDX-License-Identifier: Apache-2.0

package stores

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/metehq/mete/cmd/internal/metrics"
	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/store"
)

var postgres = Kind{Scheme: storeurl.Postgres, Shared: true, Open: openPostgres}

type postgresStore struct {
	*pgstore.Store
	connection
}

// openPostgres opens a store in PostgreSQL. Unless options make it private, the process joins the servers that
// share it. It creates a missing schema for a private store, and never removes the schema.
func openPostgres(ctx context.Context, u *storeurl.URL, o Options) (Store, error) {
	if o.joins() {
		node, err := pgstore.Connect(ctx, u.Postgres.Options, u.Postgres.Config)
		if err != nil {
			return nil, err
		}
		return &postgresStore{node.Store, connection{nodes: node.Nodes, close: node.Close}}, nil
	}
	options, config := u.Postgres.Options, u.Postgres.Config
	config.Now = o.Now
	if o.ReadOnly {
		config.SweepEvery = -1
	}
	o.own(&config.Prefix, &config.Timeout)
	pool, err := pgstore.Dial(ctx, options)
	if err != nil {
		return nil, err
	}
	s, err := newPostgres(ctx, pool, config, o.ReadOnly)
	if err != nil {
		pool.Close()
		return nil, err
	}
	return &postgresStore{s, connection{alone, func(ctx context.Context) error {
		s.Close()
		if err := s.Clear(ctx); err != nil {
			return fmt.Errorf("buckets with the key prefix %s remain in PostgreSQL until a server removes them after an hour: %w", config.Prefix, err)
		}
		return nil
	}, func() error {
		defer pool.Close()
		return s.Close()
	}}}, nil
}

func newPostgres(ctx context.Context, pool *pgxpool.Pool, config pgstore.Config, readOnly bool) (*pgstore.Store, error) {
	if !readOnly {
		if err := pgstore.Migrate(ctx, pool, config.Schema); err != nil {
			return nil, err
		}
	}
	return pgstore.New(pool, config)
}

func (s *postgresStore) Documents() store.Documents { return s.Store }
func (s *postgresStore) Metrics() metrics.Source    { return metrics.Postgres(s.Store.Stats) }
func (s *postgresStore) Close() error               { return s.close() }
