// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// flaky is a store with outages.
type flaky struct {
	mete.Store
	down atomic.Bool
}

func (f *flaky) Unwrap() mete.Store { return f.Store }

func (f *flaky) Take(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	if f.down.Load() {
		return dst, false, &mete.StoreError{Op: "take", Store: "flaky", Spent: mete.NotSpent, Err: errors.New("away")}
	}
	return f.Store.Take(ctx, dst, charges, mode)
}

// TestWithTx_RecoveryIsNotRolledBack charges the spending of an outage outside of the caller's transaction, so a
// rollback leaves it charged. A rolled-back transaction also leaves no cached decisions.
func TestWithTx_RecoveryIsNotRolledBack(t *testing.T) {
	d := newDesk(t)
	away := &flaky{Store: d.store}
	m, err := policy.Load([]byte(`{"rules": [{"name": "all", "limit_keys": [], "on_store_error": "local", "deadline": "10s",
		"algorithm_config": {"rate": "1/1000h", "burst": 10}}]}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	local, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	limiter, err := mete.New(away, m, mete.Config{Local: local})
	if err != nil {
		t.Fatal(err)
	}
	take := func(ctx context.Context, times int) (admitted int) {
		t.Helper()
		for range times {
			decision, err := limiter.Take(ctx, mete.Request{})
			if err != nil {
				t.Fatal(err)
			}
			if decision.Allowed {
				admitted++
			}
		}
		return admitted
	}
	away.down.Store(true)
	if got := take(t.Context(), 4); got != 4 {
		t.Fatalf("%d of 4 admitted while the store is away", got)
	}
	away.down.Store(false)
	tx := d.begin(pgx.TxOptions{})
	if got := take(pgstore.WithTx(t.Context(), tx), 20); got != 6 {
		t.Errorf("%d admitted in the transaction, want 6", got)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := take(t.Context(), 2); got != 2 {
		t.Errorf("%d of 2 admitted after the rollback", got)
	}
	if got := take(t.Context(), 20); got != 4 {
		t.Errorf("%d more admitted, want 4: 4 were spent locally, and 2 after the rollback", got)
	}
	away.down.Store(true)
	if got := take(t.Context(), 20); got != 0 {
		t.Errorf("%d admitted locally, want 0: the bucket was known to be empty", got)
	}
}
