// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/storetest"
)

// G1: a larger scale after the take does not enlarge a refund, and a reset ignores it.
func TestRefund_DoesNotScale(t *testing.T) {
	factor := bucket.Tokens(1)
	r, l := newBare(t, mete.Config{Scale: func(c bucket.Tokens) bucket.Tokens { return c * factor }}), limit(t, 100, "1/1h")
	r.do("take", func() (mete.Decision, error) { return r.Take(t.Context(), one("k", l, 50*whole)) })
	factor = 5
	if err := r.Refund(t.Context(), one("k", l, 3*whole)); err != nil {
		t.Fatal(err)
	}
	r.left("k", l, "53")
}

// A charge of the request with a rule's key and limit is one bucket with two costs. A settlement keeps the
// rule's fixed cost and the fixed charge once each.
func TestSettle_RuleAndChargeOfOneKey(t *testing.T) {
	r := newRig(t, `{"name": "all", "limit_keys": [], "algorithm_config": {"rate": "1/1h", "burst": 100, "fixed_cost": 1}}`)
	rule := r.Policy().Rules()[0].Limits[0].Bucket
	for _, tt := range []struct {
		charges []mete.Charge
		left    int64
	}{
		{[]mete.Charge{{Key: "all:", Limit: rule, Cost: 20}}, 94},                                                   // 1 of the rule and 5 used
		{[]mete.Charge{{Key: "all:", Limit: rule, Cost: 20, Fixed: true}}, 79},                                      // nothing is settled
		{[]mete.Charge{{Key: "all:", Limit: rule, Cost: 20}, {Key: "all:", Limit: rule, Cost: 2, Fixed: true}}, 92}, // 1 and 2 and 5
	} {
		res := r.reserve(mete.Request{Charges: tt.charges})
		if err := res.Settle(t.Context(), 5); err != nil {
			t.Fatal(err)
		}
		r.holds(nil, tt.left)
		if err := r.Reset(t.Context(), mete.Request{}); err != nil {
			t.Fatal(err)
		}
	}
}

// Refunds and resets apply to each enforced and shadow rule, at its own cost.
func TestRefund_EachClaimHasItsCost(t *testing.T) {
	clock := storetest.NewClock()
	l, err := mete.New(storetest.NewModel(clock.Now), load(t, `{"rules": [
		{"name": "b", "group": "b", "limit_keys": [], "algorithm_config": {"rate": "1/1h", "burst": 100, "fixed_cost": 3}},
		{"name": "trial", "group": "t", "limit_keys": [], "mode": "shadow", "algorithm_config": {"rate": "1/1h", "burst": 100, "fixed_cost": 7}},
		{"name": "a", "group": "a", "limit_keys": [], "algorithm_config": {"rate": "1/1h", "burst": 100, "fixed_cost": 5, "shards": 4}}]}`), mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	r := rig{t, l, clock}
	want := func(b, trial, a int64) {
		t.Helper()
		r.holds(nil, b, a)
		d := r.do("peek", func() (mete.Decision, error) { return r.Peek(t.Context(), mete.Request{Cost: 0.001}) })
		if got := d.Shadow[0].Remaining().Whole(); got != trial {
			t.Errorf("the shadow rule holds %d, want %d", got, trial)
		}
	}
	for range 3 {
		r.take(nil)
	}
	want(91, 79, 85)
	if err := r.Refund(t.Context(), mete.Request{}); err != nil {
		t.Fatal(err)
	}
	want(94, 86, 90)
	if err := r.Reset(t.Context(), mete.Request{}); err != nil {
		t.Fatal(err)
	}
	want(100, 100, 100)
}
