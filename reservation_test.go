// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

const whole = bucket.Token

func (r rig) reserve(req mete.Request) *mete.Reservation {
	r.Helper()
	res, err := r.Reserve(r.Context(), req)
	if err != nil {
		r.Fatal(err)
	}
	return res
}

func one(key string, l bucket.Limit, cost bucket.Tokens) mete.Request {
	return mete.Request{Charges: []mete.Charge{{Key: key, Limit: l, Cost: mete.TokensOf(cost)}}}
}

func TestReservation_Settle(t *testing.T) {
	l := limit(t, 100, "1/1h")
	for _, tc := range []struct {
		actual bucket.Tokens
		left   string
	}{{0, "100"}, {10 * whole, "90"}, {30 * whole, "70"}, {50 * whole, "50"}, {150 * whole, "0"}, {500, "99.5"}} {
		r := newBare(t, mete.Config{})
		res := r.reserve(one("k", l, 30*whole))
		r.left("k", l, "70")
		if err := res.Settle(t.Context(), mete.TokensOf(tc.actual)); err != nil {
			t.Fatal(err)
		}
		r.left("k", l, tc.left)
		if err := res.Settle(t.Context(), mete.TokensOf(tc.actual)); !errors.Is(err, mete.ErrSettled) {
			t.Errorf("the second settle: error %v, want ErrSettled", err)
		}
		if err := res.Cancel(t.Context()); err != nil {
			t.Errorf("cancel after settle: %v", err)
		}
		r.left("k", l, tc.left)
	}
}

// Usage above the reservation is a debt: nothing is admitted until it is paid.
func TestReservation_SettleIntoDebt(t *testing.T) {
	r, l := newBare(t, mete.Config{}), limit(t, 10, "1/1s")
	if err := r.reserve(one("k", l, 5*whole)).Settle(t.Context(), 25); err != nil {
		t.Fatal(err)
	}
	if d := r.do("take", func() (mete.Decision, error) { return r.Take(t.Context(), one("k", l, whole)) }); d.RetryAfter != 16*time.Second {
		t.Errorf("%+v, want denied for 16s", d)
	}
}

func TestReservation_Cancel(t *testing.T) {
	r, l := newBare(t, mete.Config{}), limit(t, 100, "1/1h")
	res := r.reserve(one("k", l, 30*whole))
	for range 2 {
		if err := res.Cancel(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.left("k", l, "100")
	}
	if err := res.Settle(t.Context(), 1); !errors.Is(err, mete.ErrSettled) {
		t.Errorf("settle after cancel: error %v, want ErrSettled", err)
	}
}

func TestReservation_Denied(t *testing.T) {
	r, l := newBare(t, mete.Config{}), limit(t, 10, "1/1h")
	res := r.reserve(one("k", l, 11*whole))
	if res.Allowed || res.RetryAfter != bucket.Never {
		t.Errorf("%+v, want denied for ever", res.Decision)
	}
	if err := errors.Join(res.Settle(t.Context(), 5), res.Cancel(t.Context())); err != nil {
		t.Error(err)
	}
	r.left("k", l, "10")
}

func TestReservation_InvalidCost(t *testing.T) {
	r, l := newBare(t, mete.Config{}), limit(t, 10, "1/1h")
	res := r.reserve(one("k", l, whole))
	for _, actual := range []bucket.Tokens{-1, bucket.MaxTokens + 1} {
		if err := res.Settle(t.Context(), mete.TokensOf(actual)); !errors.Is(err, mete.ErrCost) {
			t.Errorf("settle %d: error %v, want ErrCost", actual, err)
		}
	}
	if err := res.Settle(t.Context(), 0); err != nil {
		t.Errorf("settle after an invalid one: %v", err)
	}
}

func TestReservation_DebtBound(t *testing.T) {
	r, bound := newBare(t, mete.Config{}), 5*whole
	l := compile(t, bucket.Spec{Capacity: 10 * whole, Rate: bucket.Rate{Tokens: whole, Per: time.Second}, MaxReserved: &bound})
	roomy := limit(t, 1000, "1/1h")
	res := r.reserve(mete.Request{Charges: []mete.Charge{{Key: "k", Limit: l, Cost: 10}, {Key: "roomy", Limit: roomy, Cost: 10}}})
	var debt *mete.DebtError
	if err := res.Settle(t.Context(), 16); !errors.Is(err, mete.ErrDebt) || !errors.As(err, &debt) || debt.Uncharged != 6*whole {
		t.Errorf("error %v, want a DebtError of 6 tokens", err)
	}
	r.left("roomy", roomy, "990") // all or nothing
	r.clock.Advance(1e6)
	if err := res.Settle(t.Context(), 16); err != nil {
		t.Errorf("a second later: %v", err)
	}
	r.left("roomy", roomy, "984")
	if err := res.Settle(t.Context(), 16); !errors.Is(err, mete.ErrSettled) {
		t.Errorf("error %v, want ErrSettled", err)
	}
}

// Fixed costs of rules and charges do not depend on usage.
func TestReservation_SettlesWhatTheRequestDecided(t *testing.T) {
	const rules = `{"rules": [
		{"name": "requests", "limit_keys": [], "algorithm_config": {"rate": "1/1h", "burst": 100}},
		{"name": "tokens", "limit_keys": [], "group": "t", "algorithm_config": {"rate": "1/1h", "burst": 1000,
			"cost_source": "attribute:tokens", "default_cost": 50, "max_cost": 1000}}]}`
	rpm, tpm := limit(t, 100, "1/1h"), limit(t, 1000, "1/1h")
	own := []mete.Charge{{Key: "rpm", Limit: rpm, Cost: 1, Fixed: true}, {Key: "tpm", Limit: tpm, Cost: 300}}

	r := newRig(t, rules)
	if err := r.reserve(mete.Request{Attributes: mete.Attrs{"tokens": "300"}, Charges: own}).Settle(t.Context(), 120); err != nil {
		t.Fatal(err)
	}
	r.holds(nil, 99, 880)
	r.left("rpm", rpm, "99")
	r.left("tpm", tpm, "880")

	// The request's own cost applies under every rule.
	if err := r.reserve(mete.Request{Cost: 10}).Settle(t.Context(), 20); err != nil {
		t.Fatal(err)
	}
	r.holds(nil, 79, 860)

	// Parts with the same key are settled separately.
	both := mete.Request{Charges: []mete.Charge{{Key: "tpm", Limit: tpm, Cost: 80, Fixed: true}, {Key: "tpm", Limit: tpm, Cost: 300}}}
	if err := r.reserve(both).Settle(t.Context(), 100); err != nil {
		t.Fatal(err)
	}
	r.left("tpm", tpm, "700")
}

// G10: a shadow rule sees the same settlement as an enforced rule.
func TestReservation_SettlesShadowRules(t *testing.T) {
	const rules = `{"rules": [
		{"name": "user", "limit_keys": ["header:x-user"], "algorithm_config": {"rate": "1/1h", "burst": 100}},
		{"name": "trial", "limit_keys": [], "mode": "shadow", "algorithm_config": {"rate": "1/1h", "burst": 100}}]}`
	for _, tc := range []struct {
		end  func(*mete.Reservation) error
		left string
	}{
		{func(res *mete.Reservation) error { return res.Settle(t.Context(), 10) }, "90"},
		{func(res *mete.Reservation) error { return res.Settle(t.Context(), 60) }, "40"},
		{func(res *mete.Reservation) error { return res.Cancel(t.Context()) }, "100"},
	} {
		r := newRig(t, rules)
		req := mete.Request{Attributes: mete.Attrs{"header:x-user": "alice"}, Cost: 30}
		if err := tc.end(r.reserve(req)); err != nil {
			t.Fatal(err)
		}
		req.Cost = 1
		d := r.do("peek", func() (mete.Decision, error) { return r.Peek(t.Context(), req) })
		if got := d.Shadow[0].Remaining().String(); got != tc.left || d.Limits()[0].Remaining() != d.Shadow[0].Remaining() {
			t.Errorf("the shadow rule holds %s, the other %v, want %s", got, d.Limits()[0].Remaining(), tc.left)
		}
	}
}

// A scaled cost is settled at its scale.
func TestReservation_SettlesAtItsScale(t *testing.T) {
	scale := atomic.Int64{}
	scale.Store(3)
	r := newBare(t, mete.Config{Scale: func(c bucket.Tokens) bucket.Tokens { return c * bucket.Tokens(scale.Load()) }})
	l := limit(t, 1000, "1/1h")
	for _, tc := range []struct {
		actual bucket.Tokens
		left   string
	}{{10 * whole, "970"}, {20 * whole, "940"}, {50 * whole, "850"}, {0, "1000"}} {
		scale.Store(3)
		res := r.reserve(one("k", l, 20*whole))
		scale.Store(7)
		if err := res.Settle(t.Context(), mete.TokensOf(tc.actual)); err != nil {
			t.Fatal(err)
		}
		r.left("k", l, tc.left)
		r.Reset(t.Context(), one("k", l, 0))
	}
}

func TestReservation_ConcurrentEndsAreOne(t *testing.T) {
	r, l := newBare(t, mete.Config{}), limit(t, 100, "1/1h")
	res := r.reserve(one("k", l, 50*whole))
	var settled atomic.Int64
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if res.Settle(t.Context(), 20) == nil {
				settled.Add(1)
			}
		})
	}
	wg.Wait()
	if settled.Load() != 1 {
		t.Errorf("settled %d times", settled.Load())
	}
	r.left("k", l, "80")
}

// A flakyStore fails refunds.
type flakyStore struct {
	mete.Store
	fail error
}

func (s *flakyStore) Refund(ctx context.Context, refunds []mete.Refund, id string) error {
	if s.fail != nil {
		return s.fail
	}
	return s.Store.Refund(ctx, refunds, id)
}

func TestReservation_StoreFails(t *testing.T) {
	for _, tc := range []struct {
		spent store.Spending
		again error
		left  string
	}{{mete.NotSpent, nil, "90"}, {mete.MaybeSpent, mete.ErrSettled, "70"}} {
		store := &flakyStore{Store: storetest.NewModel(storetest.NewClock().Now)}
		limiter, err := mete.New(store, nil, mete.Config{})
		if err != nil {
			t.Fatal(err)
		}
		r, l := rig{t, limiter, nil}, limit(t, 100, "1/1h")
		res := r.reserve(one("k", l, 30*whole))
		store.fail = &mete.StoreError{Op: "refund", Store: "test", Spent: tc.spent, Err: errors.New("gone")}
		if err := res.Settle(t.Context(), 10); !errors.Is(err, store.fail) {
			t.Errorf("error %v, want the store's", err)
		}
		store.fail = nil
		if err := res.Settle(t.Context(), 10); !errors.Is(err, tc.again) {
			t.Errorf("settle again: error %v, want %v", err, tc.again)
		}
		r.left("k", l, tc.left)
	}
}

// A settlement charges an excess to a bucket without a cost, and then fails to refund another bucket. The
// cancellation refunds the excess as a separate take: at most the part that has not refilled.
func TestReservation_ExcessIsCanceledWithinTheBound(t *testing.T) {
	clock := storetest.NewClock()
	store := &flakyStore{Store: storetest.NewModel(clock.Now)}
	limiter, err := mete.New(store, nil, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	r, l := rig{t, limiter, clock}, limit(t, 10, "1/1s")
	res := r.reserve(mete.Request{Charges: []mete.Charge{{Key: "a", Limit: l}, {Key: "b", Limit: l, Cost: 5}}})
	store.fail = &mete.StoreError{Op: "refund", Store: "test", Spent: mete.NotSpent, Err: errors.New("gone")}
	if err := res.Settle(t.Context(), 3); !errors.Is(err, store.fail) {
		t.Fatalf("error %v, want the store's", err)
	}
	store.fail = nil
	clock.Advance(100_000_000)
	r.do("drain", func() (mete.Decision, error) { return r.Take(t.Context(), one("a", l, 10*whole)) })
	if err := res.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.left("a", l, "0")
}
