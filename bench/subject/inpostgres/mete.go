// SPDX-License-Identifier: Apache-2.0

package inpostgres

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/metehq/mete/bench/subject"
	"github.com/metehq/mete/bench/subject/remote"
	"github.com/metehq/mete/pgstore"
)

// openMete returns a pgstore over a pgx pool, both with default settings, and a function that closes them.
func openMete(ctx context.Context, at Place, q subject.Quota) (*remote.Store, func(), error) {
	pool, err := pgxpool.New(ctx, at.URL)
	if err != nil {
		return nil, nil, err
	}
	if err := pgstore.Migrate(ctx, pool, pgstore.DefaultSchema); err != nil {
		pool.Close()
		return nil, nil, err
	}
	store, err := pgstore.New(pool, pgstore.Config{Durable: at.Logged})
	if err != nil {
		pool.Close()
		return nil, nil, err
	}
	closeBoth := func() {
		_ = store.Close()
		pool.Close()
	}
	limited, err := remote.NewStore(store, q, false)
	if err != nil {
		closeBoth()
	}
	return limited, closeBoth, err
}

func newMeteStore(ctx context.Context, at Place, q subject.Quota) (remote.Limiter, error) {
	store, closeStore, err := openMete(ctx, at, q)
	if err != nil {
		return remote.Limiter{}, err
	}
	return remote.Limiter{Caller: store.StoreTakes(), Close: closeStore}, nil
}

func newMeteLimiter(ctx context.Context, at Place, q subject.Quota) (remote.Limiter, error) {
	store, closeStore, err := openMete(ctx, at, q)
	if err != nil {
		return remote.Limiter{}, err
	}
	caller, err := store.LimiterTakes()
	if err != nil {
		closeStore()
		return remote.Limiter{}, err
	}
	return remote.Limiter{Caller: caller, Close: closeStore}, nil
}
