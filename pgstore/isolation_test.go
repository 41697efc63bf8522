// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"context"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/pgstore"
)

// The search for locked buckets meets buckets that change during its statement. At a higher isolation level,
// PostgreSQL rolls the statement back, and the store tries again.
func TestFindLocked_Isolation(t *testing.T) {
	t.Parallel()
	options, err := pgxpool.ParseConfig(proctest.PostgresURL(t))
	if err != nil {
		t.Fatal(err)
	}
	options.ConnConfig.RuntimeParams["default_transaction_isolation"] = "repeatable read"
	isolated, err := pgxpool.NewWithConfig(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(isolated.Close)
	pool := newPool(t)
	schema := migrated(t, pool)
	s := open(t, isolated, pgstore.Config{Schema: schema, SweepEvery: -1, Timeout: awhile})
	other := open(t, pool, pgstore.Config{Schema: schema, SweepEvery: -1, Timeout: awhile})
	charges := of(tokens(t, 1_000_000, "1/1h"), 1, "busy")
	takes(t, other, charges, mete.Mode{})

	ctx, stop := context.WithTimeout(t.Context(), awhile)
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for ctx.Err() == nil {
				_, _, _ = other.Take(ctx, nil, charges, mete.Mode{})
			}
		})
	}
	for ctx.Err() == nil && !s.IsIsolated() {
		if err := s.FindLocked(t.Context(), "busy"); err != nil {
			t.Error(err)
			break
		}
	}
	if ctx.Err() != nil {
		t.Error("no statement was rolled back: the test says nothing")
	}
	stop()
	writers.Wait()
}
