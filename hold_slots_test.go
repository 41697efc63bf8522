// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/faulttest"
	"github.com/metehq/mete/store"
)

const budgetAndJobs = `{"rules": [` + slowRule + `, ` + twoSlots + `]}`

// A hold takes a slot in the same step. The slot ends by its own calls, and the hold by others.
func TestHold_WithSlots(t *testing.T) {
	r := newRig(t, budgetAndJobs)
	req := mete.Request{Attributes: alice, Cost: 30}
	first, second := r.hold(req, mete.HoldOptions{}), r.hold(req, mete.HoldOptions{})
	if !first.Allowed || first.Slots.Lease() != 30*time.Second || first.Slots.ID() == second.Slots.ID() || first.Expires != r.clock.Now().Add(time.Minute).Time() || first.Taken != 30*whole {
		t.Fatalf("%+v, want an open hold with a slot", first)
	}
	if h := r.hold(req, mete.HoldOptions{}); h.Allowed || h.ID != "" || h.Slots != nil || h.Reason != "concurrency_exceeded" {
		t.Errorf("%+v, want a denial without a free slot", h)
	}
	r.holds(alice, 40, 0)
	if got := r.settle(first.ID, 10); !got.Settled {
		t.Errorf("settle: %+v", got)
	}
	r.holds(alice, 60, 0)
	if lease, err := r.sibling(mete.Config{}).RenewSlots(t.Context(), mete.Request{Attributes: alice, Slot: first.Slots.ID()}); err != nil || lease != 30*time.Second {
		t.Errorf("renew the slot of a settled hold: %v, error %v", lease, err)
	}
	release(t, &first.Decision)
	release(t, &second.Decision)
	r.holds(alice, 60, 2)
	if h := r.hold(mete.Request{Attributes: alice, Cost: 61}, mete.HoldOptions{}); h.Allowed || h.Slots != nil || h.Rule != "tokens" {
		t.Errorf("%+v, want a denial by tokens", h)
	}
	r.holds(alice, 60, 2)
	if got := r.settle(second.ID, 0); !got.Settled {
		t.Errorf("settle after the release of the slot: %+v", got)
	}
	r.holds(alice, 90, 2)
}

// A repeated hold has the same slot. It takes an ended slot again, or is denied without a second charge.
func TestHold_RepeatedWithSlots(t *testing.T) {
	r := newRig(t, budgetAndJobs)
	req := mete.Request{Attributes: alice, Cost: 30, ID: "job 7"}
	first := r.hold(req, mete.HoldOptions{})
	if again := r.hold(req, mete.HoldOptions{}); again.ID != first.ID || again.Slots.ID() != first.Slots.ID() || again.Expires != first.Expires {
		t.Errorf("%+v, want the hold of the first call", again)
	}
	r.clock.Advance(30_000_000)
	if again := r.hold(req, mete.HoldOptions{}); again.ID != first.ID || again.Expires != first.Expires || again.Slots.Renew(t.Context()) != nil {
		t.Errorf("%+v, want the slot again after its lease", again)
	}
	release(t, &first.Decision)
	for range 2 {
		r.hold(mete.Request{Attributes: mete.Attrs{"header:x-user": "bob"}}, mete.HoldOptions{})
	}
	if again := r.hold(req, mete.HoldOptions{}); again.Allowed || again.ID != "" || again.Rule != "jobs" || again.Slots != nil {
		t.Errorf("%+v, want a denial without a free slot", again)
	}
	r.holds(alice, 70, 0)
	if got := r.settle(first.ID, 0); !got.Settled {
		t.Errorf("settle: %+v, want the hold unchanged by the denial", got)
	}
}

// Slots alone make no hold, and a shadow rule with slots denies nothing.
func TestHold_SlotsAlone(t *testing.T) {
	r := newRig(t, `{"rules": [`+twoSlots+`]}`)
	h := r.hold(mete.Request{}, mete.HoldOptions{})
	if !h.Allowed || h.Slots == nil || h.ID == "" || !h.Expires.IsZero() {
		t.Fatalf("%+v, want a slot and no hold", h)
	}
	if got := r.settle(h.ID, 5); got.Settled {
		t.Errorf("settle: %+v, want nothing to settle", got)
	}
	r.holds(nil, 1)
	release(t, &h.Decision)
	r.holds(nil, 2)

	r = newRig(t, fmt.Sprintf(`{"rules": [%s, {"name": "jobs", "mode": "shadow", "limit_keys": [], "algorithm": "concurrency", "max": 1, "lease": "30s"}]}`, slowRule))
	first, second := r.hold(mete.Request{Attributes: alice}, mete.HoldOptions{}), r.hold(mete.Request{Attributes: alice}, mete.HoldOptions{})
	if !second.Allowed || second.Shadow[0].Allowed || first.Slots == nil || second.Slots != nil {
		t.Fatalf("got %+v, want that only the first has a slot", second)
	}
	release(t, &first.Decision)
	if h := r.hold(mete.Request{Attributes: alice}, mete.HoldOptions{}); h.Slots == nil {
		t.Error("the slot in shadow was not released")
	}
}

// The limiter loses the answer of a hold, and the store may have taken a slot with it. The slot is released with the request, or
// after a denial.
func TestHold_SlotsOfALostAnswer(t *testing.T) {
	for _, onError := range []string{"open", "closed", "local"} {
		c := start(t, 1, fmt.Sprintf(`{"name": "budget", "limit_keys": [], "on_store_error": %q, "rate": "100/1h"},
			{"name": "jobs", "limit_keys": [], "group": "jobs", "on_store_error": %q, "algorithm": "concurrency", "max": 4, "lease": "30s"}`, onError, onError))
		n := c.nodes[0]
		n.line.cut(lossy)
		h, err := n.Hold(t.Context(), mete.Request{}, mete.HoldOptions{})
		if err != nil || h.Allowed != (onError != "closed") || !h.Degraded || (h.Slots != nil) != h.Allowed {
			t.Fatalf("%s: %+v, error %v", onError, h, err)
		}
		n.line.cut(up)
		if h.Allowed {
			release(t, &h.Decision)
		}
		limit, _, err := bucket.Spec{Algorithm: bucket.AlgorithmConcurrency, Rate: bucket.Rate{Tokens: 4 * bucket.Token, Per: 30 * time.Second}}.Compile()
		if err != nil {
			t.Fatal(err)
		}
		faulttest.Eventually(t, "the slot of the lost answer is free, "+onError, func() error {
			snaps, _, err := c.store.Take(t.Context(), nil, []store.Charge{{Key: "jobs:", Limit: limit}}, mete.Mode{DryRun: true})
			if err == nil && snaps[0].Missing() != 0 {
				err = errors.New("the slot is held")
			}
			return err
		})
	}
}
