// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

func (r rig) hold(req mete.Request, options mete.HoldOptions) *mete.Hold {
	r.Helper()
	h, err := r.Hold(r.Context(), req, options)
	if err != nil {
		r.Fatal(err)
	}
	return h
}

func (r rig) settle(id string, actual mete.Tokens) store.HoldStatus {
	r.Helper()
	status, err := r.Settle(r.Context(), id, actual)
	if err != nil {
		r.Fatal(err)
	}
	return status
}

// sibling returns another limiter over the same store.
func (r rig) sibling(config mete.Config) rig {
	r.Helper()
	l, err := mete.New(r.Store(), r.Policy(), config)
	if err != nil {
		r.Fatal(err)
	}
	return rig{r.T, l, r.clock}
}

const slowRule = `{"name": "tokens", "limit_keys": ["header:x-user"], "algorithm_config": {"rate": "1/1000h", "burst": 100}}`

var alice = mete.Attrs{"header:x-user": "alice"}

func TestHold_SettlesFromAnotherLimiter(t *testing.T) {
	r := newRig(t, slowRule)
	other := r.sibling(mete.Config{})
	for _, tc := range []struct {
		actual mete.Tokens
		left   int64
	}{{0, 100}, {10, 90}, {30, 70}, {60, 40}, {100, 0}, {500, 0}} {
		h := r.hold(mete.Request{Attributes: alice, Cost: 30}, mete.HoldOptions{})
		if !h.Allowed || h.ID == "" || h.Expires != r.clock.Now().Add(time.Minute).Time() || h.Taken != 30*whole {
			t.Fatalf("%+v, want an open hold of 30 tokens for a minute", h)
		}
		if got := other.settle(h.ID, tc.actual); !got.Settled || got.State != store.HoldSettled {
			t.Errorf("settle: %+v, want settled by this call", got)
		}
		r.holds(alice, tc.left)
		if got := r.settle(h.ID, 7); got.Settled || mete.TokensOf(got.Actual) != tc.actual {
			t.Errorf("settle again: %+v, want the first settlement", got)
		}
		r.holds(alice, tc.left)
		if err := r.Reset(t.Context(), mete.Request{Attributes: alice}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestHold_Denied(t *testing.T) {
	r := newRig(t, slowRule)
	if h := r.hold(mete.Request{Attributes: alice, Cost: 101}, mete.HoldOptions{}); h.Allowed || h.ID != "" || h.RetryAfter != bucket.Never || h.Rule != "tokens" {
		t.Errorf("%+v, want a denial for ever without an ID", h)
	}
	r.holds(alice, 100)
}

// A hold takes from the buckets of all rules or of none, and settles all of them.
func TestHold_SeveralRules(t *testing.T) {
	r := newRig(t, `{"rules": [
		{"name": "requests", "limit_keys": [], "algorithm_config": {"rate": "1/1000h", "burst": 100, "fixed_cost": 1}},
		{"name": "tokens", "limit_keys": [], "group": "t", "algorithm_config": {"rate": "1/1000h", "burst": 1000,
			"cost_source": "attribute:tokens", "default_cost": 50, "max_cost": 1000}}]}`)
	r.settle(r.hold(mete.Request{Attributes: mete.Attrs{"tokens": "300"}}, mete.HoldOptions{}).ID, 120)
	r.holds(nil, 99, 880)
	id := r.hold(mete.Request{Attributes: mete.Attrs{"tokens": "300"}}, mete.HoldOptions{}).ID
	for range 2 {
		if _, err := r.Release(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		r.holds(nil, 98, 880) // the fixed cost stays
	}
	if h := r.hold(mete.Request{Attributes: mete.Attrs{"tokens": "900"}}, mete.HoldOptions{}); h.Allowed {
		t.Error("900 of 880 tokens were held")
	}
	r.holds(nil, 98, 880)
}

func TestHold_Scale(t *testing.T) {
	r := newBare(t, mete.Config{Scale: func(cost bucket.Tokens) bucket.Tokens { return 2 * cost }})
	l := limit(t, 100, "1/1000h")
	h := r.hold(one("k", l, 30*whole), mete.HoldOptions{})
	r.left("k", l, "40")
	r.settle(h.ID, 20)
	r.left("k", l, "60")
}

func TestHold_Expiry(t *testing.T) {
	for _, refund := range []bool{false, true} {
		r := newRig(t, slowRule)
		h := r.hold(mete.Request{Attributes: alice, Cost: 30}, mete.HoldOptions{TTL: 10 * time.Second, Refund: refund})
		r.clock.Advance(9e6)
		if status, err := r.Renew(t.Context(), h.ID, 20*time.Second); err != nil || status.State != store.HoldOpen {
			t.Errorf("renew: %+v, error %v", status, err)
		}
		r.clock.Advance(19.9e6)
		r.holds(alice, 70)
		r.clock.Advance(1e5)
		if refund {
			r.holds(alice, 100)
		} else {
			r.holds(alice, 70)
		}
		status, err := r.Settle(t.Context(), h.ID, 1)
		if !errors.Is(err, store.ErrHoldEnded) || status.State != store.HoldExpired {
			t.Errorf("settle: %+v, error %v; want expired", status, err)
		}
		if _, err := r.Renew(t.Context(), h.ID, time.Second); !errors.Is(err, store.ErrHoldEnded) {
			t.Errorf("renew: error %v, want ErrHoldEnded", err)
		}
		r.clock.Advance(2 * store.RetryHorizon.Microseconds())
		if _, err := r.Release(t.Context(), h.ID); !errors.Is(err, store.ErrHoldUnknown) {
			t.Errorf("release: error %v, want ErrHoldUnknown", err)
		}
	}
}

func TestHold_Debt(t *testing.T) {
	r, bound := newBare(t, mete.Config{}), 5*whole
	l := compile(t, bucket.Spec{Capacity: 10 * whole, Rate: bucket.Rate{Tokens: whole, Per: time.Second}, MaxReserved: &bound})
	h := r.hold(one("k", l, 10*whole), mete.HoldOptions{})
	if status, err := r.Settle(t.Context(), h.ID, 16); !errors.Is(err, mete.ErrDebt) || status.State != store.HoldOpen {
		t.Errorf("%+v, error %v; want ErrDebt and an open hold", status, err)
	}
	r.clock.Advance(1e6)
	r.settle(h.ID, 16)
	if _, err := r.Renew(t.Context(), h.ID, time.Second); !errors.Is(err, store.ErrHoldEnded) {
		t.Errorf("renew a settled hold: error %v", err)
	}
}

func TestHold_WithID(t *testing.T) {
	r := newRig(t, slowRule)
	other := r.sibling(mete.Config{DenyFor: time.Second, Now: r.clock.Now})
	req := mete.Request{Attributes: alice, Cost: 60, ID: "request 1"}
	first := r.hold(req, mete.HoldOptions{})
	other.take(alice)
	if d := other.do("take", func() (mete.Decision, error) {
		return other.Take(t.Context(), mete.Request{Attributes: alice, Cost: 60})
	}); d.Allowed {
		t.Error("60 of 39 tokens were taken")
	}
	again := other.hold(req, mete.HoldOptions{})
	if again.ID != first.ID || again.Expires != first.Expires || strings.Contains(first.ID, "request") {
		t.Errorf("%q until %v, want %q until %v", again.ID, again.Expires, first.ID, first.Expires)
	}
	r.holds(alice, 39)
	req.Cost = 20 // another request
	if h := r.hold(req, mete.HoldOptions{}); h.ID == first.ID {
		t.Error("another cost returned the same hold")
	}
}

// G10: the hold of a shadow rule is settled with the enforced one, and affects nothing else.
func TestHold_Shadow(t *testing.T) {
	r := newRig(t, `{"rules": [`+slowRule+`,
		{"name": "trial", "limit_keys": [], "mode": "shadow", "algorithm_config": {"rate": "1/1000h", "burst": 50}},
		{"name": "sharded", "limit_keys": [], "group": "b", "mode": "shadow", "algorithm_config": {"rate": "1/1000h", "burst": 50, "shards": 2}}]}`)
	left := func(want ...int64) {
		t.Helper()
		d, err := r.Peek(t.Context(), mete.Request{Attributes: alice})
		var got []int64
		for _, s := range d.Shadow {
			got = append(got, s.Remaining().Whole())
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("shadow rules have %v, want %v, error %v", got, want, err)
		}
	}
	h := r.hold(mete.Request{Attributes: alice, Cost: 30}, mete.HoldOptions{})
	left(20, 20)
	if denied := r.hold(mete.Request{Attributes: alice, Cost: 40}, mete.HoldOptions{}); !denied.Allowed {
		t.Error("a shadow rule denied a hold")
	} else {
		r.settle(denied.ID, 0)
	}
	r.settle(h.ID, 10)
	r.holds(alice, 90)
	left(40, 20) // a sharded limit keeps the estimate
}

func TestHold_RefusesLimits(t *testing.T) {
	for name, config := range map[string]string{
		"shards": `"algorithm_config": {"rate": "1/1h", "burst": 100, "shards": 2}`,
		"leased": `"algorithm_config": {"rate": "1/1h", "burst": 100, "leased": true}`,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, `{"rules": [`+slowRule+`, {"name": "other", "limit_keys": [], `+config+`}]}`)
			var refused *mete.HoldError
			if _, err := r.Hold(t.Context(), mete.Request{Attributes: alice}, mete.HoldOptions{}); !errors.Is(err, store.ErrHold) || !errors.As(err, &refused) || refused.Rule != "other" {
				t.Errorf("error %v, want a HoldError about other", err)
			}
			r.holds(alice, 100, 100)
		})
	}
}

// A settlement before midnight returns the unused part of a daily budget, and a later one returns nothing to the new day.
func TestHold_OfADailyBudget(t *testing.T) {
	r := newRig(t, `{"name": "budget", "limit_keys": ["header:x-user"], "algorithm": "fixed_window",
		"algorithm_config": {"window": "day", "timezone": "America/New_York", "tokens": 100}}`)
	midnight := bucket.At(time.Date(2026, 7, 2, 4, 0, 0, 0, time.UTC))
	hold := func(at bucket.Instant) string {
		r.clock.Set(at)
		return r.hold(mete.Request{Attributes: alice, Cost: 30}, mete.HoldOptions{TTL: time.Hour}).ID
	}
	first, second, third := hold(midnight-1000), hold(midnight-900), hold(midnight-800)
	r.settle(first, 12)
	r.holds(alice, 28)
	r.clock.Set(midnight - 1)
	r.settle(second, 0)
	r.holds(alice, 58)
	today := hold(midnight)
	r.settle(third, 0)
	r.holds(alice, 70)
	r.settle(today, 90)
	r.holds(alice, 10)
}

func TestHold_BadInput(t *testing.T) {
	r := newRig(t, slowRule)
	for _, ttl := range []time.Duration{-1, time.Microsecond, store.MaxHoldTTL + 1} {
		if _, err := r.Hold(t.Context(), mete.Request{Attributes: alice}, mete.HoldOptions{TTL: ttl}); !errors.Is(err, store.ErrHold) {
			t.Errorf("ttl %v: error %v, want ErrHold", ttl, err)
		}
		if _, err := r.Renew(t.Context(), "x", ttl); !errors.Is(err, store.ErrHold) {
			t.Errorf("renew for %v: error %v, want ErrHold", ttl, err)
		}
	}
	id := r.hold(mete.Request{Attributes: alice}, mete.HoldOptions{}).ID
	for _, actual := range []mete.Tokens{-1, 0.00001, mete.TokensOf(bucket.MaxTokens) * 2} {
		if _, err := r.Settle(t.Context(), id, actual); !errors.Is(err, mete.ErrCost) {
			t.Errorf("settle %v: error %v, want ErrCost", actual, err)
		}
	}
	base, _, _ := strings.Cut(id, "_")
	for _, bad := range []string{"", "x", "_0", strings.ToLower(id), id + "_x", base + "_", base + "_0_", base + "x_0", base + "_0.zz", base + strings.Repeat("_1", 70), "\x00" + id[1:]} {
		if _, err := r.Settle(t.Context(), bad, 1); !errors.Is(err, store.ErrHoldUnknown) {
			t.Errorf("settle %q: error %v, want ErrHoldUnknown", bad, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Settle(ended, id, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("settle with an ended context: error %v", err)
	}
	if got := r.settle(id, 0); !got.Settled {
		t.Errorf("%+v: an invalid call has settled the hold", got)
	}
}

// A plain store is a Store without holds.
type plain struct{ mete.Store }

func TestHold_Unsupported(t *testing.T) {
	l, err := mete.New(plain{storetest.NewModel(storetest.NewClock().Now)}, nil, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	_, holdErr := l.Hold(t.Context(), one("k", limit(t, 10, "1/1h"), whole), mete.HoldOptions{})
	_, settleErr := l.Settle(t.Context(), "x", 1)
	if !errors.Is(holdErr, errors.ErrUnsupported) || !errors.Is(settleErr, errors.ErrUnsupported) {
		t.Errorf("errors %v and %v, want ErrUnsupported", holdErr, settleErr)
	}
}

func TestHold_NoRule(t *testing.T) {
	r := newRig(t, slowRule)
	h := r.hold(mete.Request{Attributes: mete.Attrs{}, Cost: 5}, mete.HoldOptions{})
	if !h.Allowed || h.ID == "" || !h.Expires.IsZero() {
		t.Fatalf("%+v, want allowed without a hold", h)
	}
	for range 2 {
		if got := r.settle(h.ID, 3); got.State != store.HoldSettled || got.Settled {
			t.Errorf("%+v, want settled without an effect", got)
		}
	}
	if _, err := r.Renew(t.Context(), h.ID, time.Second); err != nil {
		t.Error(err)
	}
}

func TestHold_Events(t *testing.T) {
	clock := storetest.NewClock()
	var got []string
	l, err := mete.New(storetest.NewModel(clock.Now), nil, mete.Config{OnHold: func(_ context.Context, op, result string) { got = append(got, op+" "+result) }})
	if err != nil {
		t.Fatal(err)
	}
	r, k := rig{t, l, clock}, limit(t, 10, "1/1h")
	id := r.hold(one("k", k, 4*whole), mete.HoldOptions{}).ID
	r.hold(one("k", k, 9*whole), mete.HoldOptions{})
	_, _ = r.Renew(t.Context(), id, time.Second)
	r.settle(id, 1)
	r.settle(id, 1)
	_, _ = r.Renew(t.Context(), id, time.Second)
	id = r.hold(one("k", k, whole), mete.HoldOptions{}).ID
	clock.Advance(60e6)
	_, _ = r.Release(t.Context(), id)
	_, _ = r.Release(t.Context(), "x")
	r.settle(r.hold(mete.Request{}, mete.HoldOptions{}).ID, 1)
	if _, err := r.Hold(t.Context(), one("", k, whole), mete.HoldOptions{}); err == nil {
		t.Error("a charge without a key was held")
	}
	want := []string{"hold opened", "hold denied", "renew renewed", "settle settled", "settle repeated", "renew expired", "hold opened",
		"release expired", "release unknown", "hold unheld", "settle unheld", "hold error"}
	if !slices.Equal(got, want) {
		t.Errorf("events\n%q, want\n%q", got, want)
	}
}

func TestHold_TooMany(t *testing.T) {
	s, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := mete.New(s, nil, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	k := limit(t, 100_000, "1/1h")
	for i := range bucket.MaxHolds + 1 {
		h, err := l.Hold(t.Context(), one("k", k, whole), mete.HoldOptions{})
		if i < bucket.MaxHolds && (err != nil || !h.Allowed) {
			t.Fatalf("hold %d: %+v, error %v", i, h, err)
		}
		if i == bucket.MaxHolds && !errors.Is(err, store.ErrTooManyHolds) {
			t.Errorf("hold %d: error %v, want ErrTooManyHolds", i, err)
		}
	}
}
