// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/store"
)

func newPenalty(t *testing.T, first, most time.Duration) *bucket.Penalty {
	t.Helper()
	p, err := bucket.NewPenalty(first, most, 2*bucket.Token)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A penalty of a request's own charge: the decision shows the true wait, and a reset ends it.
func TestPenalty_OfCharge(t *testing.T) {
	r := newBare(t, mete.Config{})
	c := mete.Charge{Key: "user:alice", Limit: limit(t, 1, "1/1s"), Cost: 1, Penalty: newPenalty(t, time.Minute, time.Hour)}
	req := mete.Request{Charges: []mete.Charge{c}}
	ask := func(want time.Duration) {
		t.Helper()
		d := r.do("take", func() (mete.Decision, error) { return r.Take(t.Context(), req) })
		if d.Allowed != (want == 0) || d.RetryAfter != want {
			t.Errorf("allowed %v, wait %v; want %v", d.Allowed, d.RetryAfter, want)
		}
		if want > 0 && d.Reason != "token_bucket_exceeded" {
			t.Errorf("reason %q", d.Reason)
		}
	}
	ask(0)
	ask(time.Minute)
	r.clock.Advance((time.Minute - time.Microsecond).Microseconds())
	ask(time.Microsecond)
	r.clock.Advance(1)
	ask(0)
	ask(2 * time.Minute)
	if d := r.do("charge", func() (mete.Decision, error) { return r.Charge(t.Context(), req) }); !d.Allowed {
		t.Error("a cost of finished work was denied")
	}
	if err := r.Refund(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	ask(2 * time.Minute)
	if err := r.Reset(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	ask(0)
}

// Wait sleeps through a penalty, and starts none.
func TestPenalty_Wait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, l := range map[string]bucket.Limit{
			"continuous":     limit(t, 1, "1/1s"),
			"sliding window": compile(t, bucket.Spec{Algorithm: bucket.AlgorithmSlidingWindow, Rate: bucket.Rate{Tokens: bucket.Token, Per: time.Second}}),
		} {
			s, err := memstore.New(memstore.Config{})
			if err != nil {
				t.Fatal(err)
			}
			m, err := mete.New(s, nil, mete.Config{})
			if err != nil {
				t.Fatal(err)
			}
			req := mete.Request{Charges: []mete.Charge{{Key: "k", Limit: l, Cost: 1, Penalty: newPenalty(t, time.Minute, time.Hour)}}}
			for range 5 {
				if _, err := m.Wait(t.Context(), req); err != nil {
					t.Fatal(err)
				}
			}
			if got := s.Stats().Penalties; got != 0 {
				t.Errorf("%s: %d penalties after polite waits", name, got)
			}
			if d, err := m.Take(t.Context(), req); err != nil || d.Allowed {
				t.Fatalf("%s: allowed %v, %v", name, d.Allowed, err)
			}
			began, soon := time.Now(), req
			soon.MaxWait = 59 * time.Second
			if _, err := m.Wait(t.Context(), soon); !errors.Is(err, mete.ErrDeadlineTooSoon) {
				t.Errorf("%s: %v, want that the wait is too long", name, err)
			}
			if _, err := m.Wait(t.Context(), req); err != nil {
				t.Fatal(err)
			}
			if slept := time.Since(began); slept < time.Minute || slept > 62*time.Second {
				t.Errorf("%s: slept %v, want the penalty of one minute", name, slept)
			}
		}
	})
}

func TestPenalty_BadCharges(t *testing.T) {
	r := newBare(t, mete.Config{})
	good := mete.Charge{Key: "k", Limit: limit(t, 5, "1/1s"), Cost: 1, Penalty: newPenalty(t, time.Minute, time.Minute)}
	sharded, leased, marked, other := good, good, good, good
	sharded.Shards, leased.Leased, marked.Key, other.Penalty = 2, true, "k"+store.PenaltyMark, nil
	for want, charges := range map[string][]mete.Charge{
		"needs one bucket":             {sharded},
		"remove Shards and Leased":     {leased},
		"reserved for penalties":       {marked},
		"a different limit or penalty": {good, other},
	} {
		if _, err := r.Take(t.Context(), mete.Request{Charges: charges}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
