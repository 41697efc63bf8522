// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"context"
	"errors"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/guard"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// A joining store keeps the calls of a transaction in a separate store, which a rollback discards.
type joining struct {
	*counted
	inside mete.Store
}

type inTx struct{}

func (j *joining) InTransaction(ctx context.Context) bool { return ctx.Value(inTx{}) != nil }

func (j *joining) Take(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	if j.InTransaction(ctx) {
		return j.inside.Take(ctx, dst, charges, mode)
	}
	return j.counted.Take(ctx, dst, charges, mode)
}

func (j *joining) Refund(ctx context.Context, refunds []mete.Refund, id string) error {
	if j.InTransaction(ctx) {
		return j.inside.Refund(ctx, refunds, id)
	}
	return j.counted.Refund(ctx, refunds, id)
}

// around wraps another store.
type around struct{ mete.Store }

func (a around) Unwrap() mete.Store { return a.Store }

// TestTransaction_DoesNotCount proves that failed transactions do not count, and that an open breaker admits
// calls in a transaction.
func TestTransaction_DoesNotCount(t *testing.T) {
	clock := storetest.NewClock()
	fails := &counted{Store: storetest.NewModel(clock.Now), fail: func() error { return errors.New("the connection is gone") }}
	inner := &joining{&counted{Store: storetest.NewModel(clock.Now)}, fails}
	g := guarded(t, around{inner}, guard.Config{Failures: 1, MinFailing: 1})
	tx := context.WithValue(t.Context(), inTx{}, true)
	ten, err := bucket.NewLimit(10*bucket.Token, bucket.PerSecond(bucket.Token))
	if err != nil {
		t.Fatal(err)
	}
	one := []store.Charge{{Key: "k", Limit: ten, Cost: bucket.Token}}
	for range 100 {
		if _, _, err := g.Take(tx, nil, one, mete.Mode{}); err == nil {
			t.Fatal("no error")
		}
	}
	if g.State() != guard.StateClosed {
		t.Errorf("the breaker is %s after failures of transactions", g.State())
	}
	inner.counted.fail, fails.fail = fails.fail, nil
	for range 1000 {
		if g.State() == guard.StateOpen {
			break
		}
		_, _, _ = g.Take(t.Context(), nil, one, mete.Mode{})
	}
	if g.State() != guard.StateOpen {
		t.Fatal("the breaker does not open")
	}
	if _, allowed, err := g.Take(tx, nil, one, mete.Mode{}); err != nil || !allowed {
		t.Errorf("in a transaction, with the breaker open: allowed %v, error %v", allowed, err)
	}
	if err := g.Refund(tx, []mete.Refund{{Charge: one[0]}}, ""); err != nil {
		t.Errorf("refund in a transaction, with the breaker open: %v", err)
	}
}
