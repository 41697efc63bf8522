// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// A failingStore fails the next refunds with these errors, and counts the refunds that it applies.
type failingStore struct {
	mete.Store
	errs    []error
	applied int
}

func (s *failingStore) Refund(ctx context.Context, refunds []mete.Refund, id string) error {
	if len(s.errs) > 0 {
		err := s.errs[0]
		s.errs = s.errs[1:]
		return err
	}
	s.applied++
	return s.Store.Refund(ctx, refunds, id)
}

func storeError(spent store.Spending) error {
	return &mete.StoreError{Op: "refund", Store: "test", Spent: spent, Err: errors.New("down")}
}

// finisher is a limiter with rules in a store that can fail.
type finisher struct {
	*mete.Limiter
	store       *failingStore
	settlements []policy.Settlement
}

func newFinisher(t *testing.T, rules string) *finisher {
	t.Helper()
	m, err := policy.Load([]byte(`{"rules": [`+rules+`]}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	inner, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	f := &finisher{store: &failingStore{Store: inner}}
	hook := func(_ context.Context, s *policy.Settlement) { f.settlements = append(f.settlements, *s) }
	if f.Limiter, err = mete.New(f.store, m, mete.Config{OnSettlement: hook}); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *finisher) reserve(t *testing.T, req mete.Request) *mete.Reservation {
	t.Helper()
	r, err := f.Reserve(t.Context(), req)
	if err != nil || !r.Allowed {
		t.Fatalf("reserve: got %+v (%v)", r, err)
	}
	return r
}

func (f *finisher) left(t *testing.T, key string) bucket.Tokens {
	t.Helper()
	b, err := f.Bucket(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return b.Room()
}

const (
	failed = `{"name": "failed", "limit_keys": [], "group": "a", "charge_on": {"status": [401]}, "algorithm_config": {"rate": "10/1d", "burst": 10}}`
	always = `{"name": "always", "limit_keys": [], "group": "b", "algorithm_config": {"rate": "10/1d", "burst": 10}}`
)

var success = policy.Response{Status: 200, Ended: true}

// A refund touches only the limits that the outcome decides, once.
func TestFinish_OtherLimitsStayCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFinisher(t, failed+","+always+`,
			{"name": "two", "limit_keys": [], "group": "c", "charge_on": {"status": ["2xx"]}, "limits": [
				{"name": "ok", "rate": "10/1d", "burst": 10}, {"name": "bad", "rate": "10/1d", "burst": 10, "charge_on": {"status": ["4xx"]}}]},
			{"name": "watched", "mode": "shadow", "limit_keys": [], "group": "d", "charge_on": {"status": [401]}, "algorithm_config": {"rate": "10/1d", "burst": 10}}`)
		r := f.reserve(t, mete.Request{})
		if !r.AwaitsResponse() {
			t.Error("the reservation awaits no response")
		}
		for range 3 {
			if err := r.Finish(t.Context(), success); err != nil {
				t.Error(err)
			}
		}
		for key, want := range map[string]bucket.Tokens{"failed:": 10, "always:": 9, "two/ok:": 9, "two/bad:": 10, "watched:": 10} {
			if got := f.left(t, key); got != want*bucket.Token {
				t.Errorf("%s has %v tokens, want %v", key, got, want)
			}
		}
		if f.store.applied != 2 { // one for the enforced limits, one for the shadow rule
			t.Errorf("%d refunds, want 2", f.store.applied)
		}
		want := map[string]bucket.Tokens{"failed": 0, "two/ok": bucket.Token, "two/bad": 0, "watched": 0}
		if len(f.settlements) != len(want) {
			t.Errorf("%d settlements, want %d", len(f.settlements), len(want))
		}
		for _, s := range f.settlements {
			if s.Charged != want[s.Limit.Name] || s.Reserved != bucket.Token || s.Shadow != (s.Rule.Name == "watched") {
				t.Errorf("got settlement %+v", s)
			}
		}
		if err := r.Settle(t.Context(), 0); !errors.Is(err, mete.ErrSettled) {
			t.Errorf("settle after finish: got %v, want %v", err, mete.ErrSettled)
		}
	})
}

// An unknown outcome changes nothing, and neither does a reservation without such limits.
func TestFinish_Unknown(t *testing.T) {
	f := newFinisher(t, failed)
	if err := f.reserve(t, mete.Request{}).Finish(t.Context(), policy.Response{Ended: true}); err != nil || f.left(t, "failed:") != 9*bucket.Token {
		t.Errorf("got %v, and %v tokens left, want 9", err, f.left(t, "failed:"))
	}
	f = newFinisher(t, always)
	r := f.reserve(t, mete.Request{})
	if err := r.Finish(t.Context(), success); err != nil || r.AwaitsResponse() || f.store.applied > 0 || len(f.settlements) > 0 {
		t.Errorf("got %v with %d refunds", err, f.store.applied)
	}
}

// A final cost that the bucket cannot owe starts no penalty.
func TestFinish_Penalty(t *testing.T) {
	f := newFinisher(t, `{"name": "p", "limit_keys": [], "penalty": "1h",
		"algorithm_config": {"rate": "10/1d", "burst": 10, "max_reserved": 0, "cost_source": "response_header:x-cost"}}`)
	costs := func(cost string) policy.Response {
		header := func(string) (string, bool) { return cost, true }
		return policy.Response{Status: 200, Ended: true, Header: header}
	}
	last := f.reserve(t, mete.Request{})
	f.reserve(t, mete.Request{Cost: 9})
	if err := last.Finish(t.Context(), costs("5")); err != nil {
		t.Error(err)
	}
	var refused *mete.DebtError
	if len(f.settlements) != 1 || !errors.As(f.settlements[0].Err, &refused) || refused.Uncharged != 4*bucket.Token {
		t.Errorf("got settlements %+v, want one that could not charge 4 tokens", f.settlements)
	}
	d, err := f.Peek(t.Context(), mete.Request{})
	if err != nil || d.Allowed {
		t.Fatalf("got %+v (%v), want a denial", d, err)
	}
	if left, level := d.Limits()[0].Penalty(); left != 0 || level != 0 {
		t.Errorf("a settlement started a penalty of %v, level %d", left, level)
	}
}

// The request's own charge in a rule's bucket stays.
func TestFinish_OwnChargeInTheSameBucket(t *testing.T) {
	f := newFinisher(t, failed)
	limit, err := bucket.NewLimit(10*bucket.Token, bucket.Rate{Tokens: 10 * bucket.Token, Per: 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	r := f.reserve(t, mete.Request{Charges: []mete.Charge{{Key: "failed:", Limit: limit, Cost: 3}}})
	if err := r.Finish(t.Context(), success); err != nil || f.left(t, "failed:") != 7*bucket.Token {
		t.Errorf("got %v, and %v tokens left, want 7", err, f.left(t, "failed:"))
	}
}

// A refund that did not reach the store is repeated, for a while. One that may have been applied is not.
func TestFinishSoon_Retries(t *testing.T) {
	not, maybe := storeError(store.NotSpent), storeError(store.MaybeSpent)
	many := make([]error, 100)
	for i := range many {
		many[i] = not
	}
	for name, tt := range map[string]struct {
		errs []error
		want bucket.Tokens // left of 10
		err  bool
	}{
		"after some failures":       {errs: []error{not, not, not}, want: 10},
		"never after a lost answer": {errs: []error{maybe}, want: 9, err: true},
		"a lost answer of a retry":  {errs: []error{not, maybe}, want: 9, err: true},
		"not forever":               {errs: many, want: 9, err: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFinisher(t, failed+","+always)
				f.store.errs = tt.errs
				r := f.reserve(t, mete.Request{})
				ctx, cancel := context.WithCancel(t.Context())
				began := time.Now()
				r.FinishSoon(ctx, success)
				cancel()
				if took := time.Since(began); took != 0 {
					t.Errorf("the response waited %v", took)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				// A part of a token has refilled meanwhile.
				if got := f.left(t, "failed:") / bucket.Token; got != tt.want || f.left(t, "always:")/bucket.Token != 9 {
					t.Errorf("%v tokens left, want %v", got, tt.want)
				}
				if len(f.settlements) != 1 || (f.settlements[0].Err != nil) != tt.err {
					t.Errorf("got settlements %+v", f.settlements)
				}
			})
		})
	}
}

// A program can repeat Finish itself after an error that spent nothing.
func TestFinish_RepeatedByTheCaller(t *testing.T) {
	f := newFinisher(t, failed)
	f.store.errs = []error{storeError(store.NotSpent)}
	r := f.reserve(t, mete.Request{})
	if err := r.Finish(t.Context(), success); mete.Spent(err) != mete.NotSpent || err == nil {
		t.Errorf("got %v", err)
	}
	if err := r.Finish(t.Context(), success); err != nil || f.left(t, "failed:") != 10*bucket.Token {
		t.Errorf("got %v, and %v tokens left, want 10", err, f.left(t, "failed:"))
	}
}

// A cost above the reserved one becomes a debt. A limit without debt pays until it is empty.
func TestFinish_HigherCost(t *testing.T) {
	for name, tt := range map[string]struct {
		config string
		want   bucket.Tokens // missing after a response of 15 tokens
		err    bool
	}{
		"debt":           {`"algorithm_config": {"rate": "10/1d", "burst": 10, "cost_source": "response_header:x-cost"}`, 15, false},
		"no debt":        {`"algorithm_config": {"rate": "10/1d", "burst": 10, "max_reserved": 0, "cost_source": "response_header:x-cost"}`, 10, true},
		"sliding window": {`"algorithm": "sliding_window", "algorithm_config": {"tokens": 10, "window": "1d", "cost_source": "response_header:x-cost"}`, 15, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFinisher(t, fmt.Sprintf(`{"name": "points", "limit_keys": [], %s},`, tt.config)+always)
				r := f.reserve(t, mete.Request{})
				res := policy.Response{Status: 200, Header: func(string) (string, bool) { return "15", true }, Ended: true}
				if err := r.Finish(t.Context(), res); err != nil {
					t.Error(err)
				}
				b, err := f.Bucket(t.Context(), "points:")
				if err != nil || b.Missing() != tt.want*bucket.Token {
					t.Errorf("%v tokens are missing (%v), want %v", b.Missing(), err, tt.want)
				}
				if s := f.settlements[0]; s.Charged != tt.want*bucket.Token || errors.Is(s.Err, mete.ErrDebt) != tt.err {
					t.Errorf("got settlement %+v", s)
				}
			})
		})
	}
}
