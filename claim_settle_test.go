// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
)

// A new scale between two attempts at a reservation does not change the settlement: the first attempt has spent
// at its scale.
func TestSettle_RetryAtAnotherScale(t *testing.T) {
	for used, left := range map[mete.Tokens]string{10: "90", 20: "80"} {
		factor := bucket.Tokens(1)
		r := newBare(t, mete.Config{Scale: func(c bucket.Tokens) bucket.Tokens { return c * factor }})
		l := limit(t, 100, "1/1h")
		req := one("k", l, 10*whole)
		req.ID = "attempt"
		r.reserve(req)
		factor = 3
		res := r.reserve(req)
		if !res.Allowed || res.Limits()[0].Cost != 10*whole {
			t.Fatalf("%+v, want the answer to the first attempt", res.Decision)
		}
		if err := res.Settle(t.Context(), used); err != nil {
			t.Fatal(err)
		}
		r.left("k", l, left)
	}
}

// A shadow rule settles its own cost, even if a charge of the request has the same key.
func TestSettle_ChargeWithTheKeyOfAShadowRule(t *testing.T) {
	r := newRig(t, `{"name": "trial", "mode": "shadow", "limit_keys": [], "algorithm_config": {"rate": "1/1h", "burst": 100, "fixed_cost": 1}}`)
	rule := r.Policy().Rules()[0].Limits[0].Bucket
	res := r.reserve(one("trial:", rule, 20*whole))
	if len(res.Shadow) != 1 || res.Shadow[0].Cost != whole {
		t.Fatalf("%+v, want a shadow rule that took 1", res.Decision)
	}
	r.left("trial:", rule, "79")
	if err := res.Settle(t.Context(), 5); err != nil {
		t.Fatal(err)
	}
	r.left("trial:", rule, "94") // without 5 that were used, and the 1 that the rule fixes
}

// A retry returns the first attempt's cost before scaling.
func TestTake_RetryAtAnotherScale(t *testing.T) {
	factor := bucket.Tokens(1)
	r := newBare(t, mete.Config{Scale: func(c bucket.Tokens) bucket.Tokens { return c * factor }})
	req := one("k", limit(t, 100, "1/1h"), 10*whole)
	for _, factor = range []bucket.Tokens{2, 3, 1} {
		req.ID = "attempt"
		if d := r.do("take", func() (mete.Decision, error) { return r.Take(t.Context(), req) }); d.Limits()[0].Cost != 20*whole || d.Taken != 10*whole {
			t.Errorf("at the scale %d: cost %v, taken %v; want 20 and 10", factor, d.Limits()[0].Cost, d.Taken)
		}
	}
}

// A shadow rule that would deny has spent nothing, so a settlement charges it no excess.
func TestSettle_ShadowRuleThatWouldDeny(t *testing.T) {
	r := newRig(t, `{"name": "trial", "mode": "shadow", "limit_keys": [], "algorithm_config": {"rate": "1/1h", "burst": 10}}`)
	rule := r.Policy().Rules()[0].Limits[0].Bucket
	res := r.reserve(mete.Request{Cost: 30})
	if !res.Allowed || len(res.Shadow) != 1 || res.Shadow[0].Allowed {
		t.Fatalf("%+v, want a shadow rule that would deny 30 of 10", res.Decision)
	}
	if err := res.Settle(t.Context(), 35); err != nil {
		t.Fatal(err)
	}
	r.left("trial:", rule, "10")
}

// G1: a settlement rounds the scaled cost up, so it returns at most the unused part.
func TestSettle_RoundsUp(t *testing.T) {
	r := newBare(t, mete.Config{Scale: func(c bucket.Tokens) bucket.Tokens { return c * 10 / 3 }})
	l := limit(t, 100, "1/1h")
	res := r.reserve(one("k", l, 3*whole)) // which costs 10
	if err := res.Settle(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	r.left("k", l, "96.666") // 100 − 3.334
}

// A scale raises a cost at most to the capacity of a queue.
func TestScale_OfAQueue(t *testing.T) {
	r := newBare(t, mete.Config{Scale: func(c bucket.Tokens) bucket.Tokens { return c * 10 }})
	l := compile(t, bucket.Spec{Capacity: whole, Rate: bucket.PerSecond(whole), Queue: 5 * whole})
	d := r.do("take", func() (mete.Decision, error) { return r.Take(t.Context(), one("k", l, 2*whole)) })
	if !d.Allowed || d.Limits()[0].Cost != l.Capacity()+l.MaxReserved() || d.Taken != 2*whole {
		t.Errorf("%+v, want a cost of %v for 2", d, l.Capacity()+l.MaxReserved())
	}
}
