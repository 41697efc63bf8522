// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

func (r rig) upTo(req mete.Request) mete.Decision {
	r.Helper()
	return r.do("take up to", func() (mete.Decision, error) { return r.TakeUpTo(r.Context(), req) })
}

func TestTakeUpTo(t *testing.T) {
	r, l := newBare(t, mete.Config{}), limit(t, 10, "1/1s")
	for i, want := range []struct {
		taken   bucket.Tokens
		allowed bool
		retry   time.Duration
	}{{4 * whole, true, 0}, {4 * whole, true, 0}, {2 * whole, true, 0}, {0, false, time.Second}} {
		if d := r.upTo(one("k", l, 4*whole)); d.Taken != want.taken || d.Allowed != want.allowed || d.RetryAfter != want.retry {
			t.Errorf("step %d: %+v, want %+v", i, d, want)
		}
	}
	r.clock.Advance(2_900_000)
	if d := r.upTo(one("k", l, 4*whole)); d.Taken != 2*whole {
		t.Errorf("took %v of 2.9, want whole tokens: 2", d.Taken)
	}
	if d := r.upTo(one("k", l, 500)); d.Taken != 500 {
		t.Errorf("took %v of 0.9, want the 0.5 that was asked for", d.Taken)
	}
}

// The emptiest bucket determines the amount.
func TestTakeUpTo_SeveralLimits(t *testing.T) {
	r := newRig(t, nested)
	d := r.upTo(mete.Request{Attributes: mete.Attrs{"header:x-user": "alice"}, Cost: 5})
	if !d.Allowed || d.Taken != 3*whole || d.Limits()[0].Cost != 3*whole {
		t.Errorf("%+v, want 3 tokens of both", d)
	}
	r.holds(mete.Attrs{"header:x-user": "alice"}, 2, 0)
}

func TestTakeUpTo_Shadow(t *testing.T) {
	r := newRig(t, `{"rules": [
		{"name": "all", "limit_keys": [], "algorithm_config": {"rate": "1/1h", "burst": 5}},
		{"name": "trial", "limit_keys": [], "group": "t", "mode": "shadow", "algorithm_config": {"rate": "1/1h", "burst": 7}}]}`)
	d := r.upTo(mete.Request{Cost: 9})
	if d.Taken != 5*whole || len(d.Shadow) != 1 || d.Shadow[0].Cost != 5*whole {
		t.Errorf("%+v: want 5 tokens, and no more from the shadow rule", d)
	}
}

func TestTakeUpTo_NoLimit(t *testing.T) {
	if d := newBare(t, mete.Config{}).upTo(mete.Request{Cost: 9}); !d.Allowed || d.Taken != 9*whole {
		t.Errorf("%+v, want all of it", d)
	}
}

func TestCharge_IntoDebt(t *testing.T) {
	r, bound := newBare(t, mete.Config{}), 20*whole
	l := compile(t, bucket.Spec{Capacity: 10 * whole, Rate: bucket.Rate{Tokens: whole, Per: time.Second}, MaxReserved: &bound})
	charge := func(cost bucket.Tokens) mete.Decision {
		return r.do("charge", func() (mete.Decision, error) { return r.Charge(t.Context(), one("k", l, cost)) })
	}
	if d := charge(25 * whole); !d.Allowed || d.Wait != 15*time.Second {
		t.Errorf("%+v, want allowed with a debt of 15s", d)
	}
	d := charge(6 * whole)
	if d.Allowed || d.RetryAfter != time.Second || d.Reason == "" {
		t.Errorf("%+v, want denied for 1s: no more can be owed", d)
	}
	r.clock.Advance(d.RetryAfter.Microseconds())
	if d := charge(6 * whole); !d.Allowed {
		t.Errorf("a second later: %+v, want allowed", d)
	}
	if d := charge(31 * whole); d.Allowed || d.RetryAfter != bucket.Never {
		t.Errorf("more than can ever be owed: %+v, want never", d)
	}
}

func TestMaxWait_Negative(t *testing.T) {
	r, l := newBare(t, mete.Config{}), limit(t, 1, "1/1s")
	for _, wait := range []time.Duration{-1, bucket.Forced} {
		req := one("k", l, 2*whole)
		req.MaxWait = wait
		for name, f := range map[string]func(context.Context, mete.Request) (mete.Decision, error){"take": r.Take, "peek": r.Peek} {
			if d := r.do(name, func() (mete.Decision, error) { return f(t.Context(), req) }); d.Allowed {
				t.Errorf("%s with a longest wait of %d was allowed to owe", name, wait)
			}
		}
		if res := r.reserve(req); res.Allowed {
			t.Errorf("reserve with a longest wait of %d was allowed to owe", wait)
		}
	}
}

// An ID is charged once, also by shadow rules.
func TestID(t *testing.T) {
	clock := storetest.NewClock()
	l, err := mete.New(storetest.NewModel(clock.Now), load(t, `{"rules": [
		{"name": "user", "limit_keys": ["header:x-user"], "algorithm_config": {"rate": "1/1h", "burst": 5}},
		{"name": "trial", "limit_keys": [], "mode": "shadow", "algorithm_config": {"rate": "1/1h", "burst": 5}}]}`), mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	r, alice := rig{t, l, clock}, mete.Attrs{"header:x-user": "alice"}
	take := func(id string) mete.Decision {
		return r.do("take", func() (mete.Decision, error) {
			return l.Take(t.Context(), mete.Request{Attributes: alice, Cost: 2, ID: id})
		})
	}
	for range 3 {
		if d := take("a"); !d.Allowed || d.Limits()[0].Remaining() != 3*whole || d.Shadow[0].Remaining() != 3*whole {
			t.Errorf("%+v, want the answer of the first", d)
		}
	}
	take("b")
	if d := take("c"); d.Allowed {
		t.Errorf("%+v, want denied", d)
	}
	if d := take("a"); !d.Allowed {
		t.Errorf("%+v, want what was admitted", d)
	}
	d := r.do("peek", func() (mete.Decision, error) {
		return l.Peek(t.Context(), mete.Request{Attributes: alice, Cost: 0.001})
	})
	if d.Limits()[0].Remaining() != whole || d.Shadow[0].Remaining() != whole {
		t.Errorf("%v and in shadow %v are left, want 1", d.Limits()[0].Remaining(), d.Shadow[0].Remaining())
	}
}

func TestID_Invalid(t *testing.T) {
	r := newRig(t, nested)
	for _, id := range []string{strings.Repeat("x", store.MaxIDBytes+1), "a\nb", "é", "\x7f"} {
		if _, err := r.Take(t.Context(), mete.Request{ID: id}); !errors.Is(err, mete.ErrRequest) {
			t.Errorf("ID %q: error %v, want ErrRequest", id, err)
		}
	}
	r.holds(nil, 3)
	if _, err := r.Take(t.Context(), mete.Request{ID: strings.Repeat("~", store.MaxIDBytes)}); err != nil {
		t.Errorf("the longest ID: %v", err)
	}
}

func TestScale(t *testing.T) {
	factor := bucket.Tokens(3)
	r := newBare(t, mete.Config{Scale: func(c bucket.Tokens) bucket.Tokens { return c * factor }})
	l := limit(t, 10, "1/1h")
	take := func(cost bucket.Tokens) mete.Decision {
		return r.do("take", func() (mete.Decision, error) { return r.Take(t.Context(), one("k", l, cost)) })
	}
	if d := take(2 * whole); !d.Allowed || d.Limits()[0].Cost != 6*whole || d.Taken != 2*whole {
		t.Errorf("%+v, want a cost of 6 for 2", d)
	}
	if d := r.upTo(one("k", l, 3*whole)); d.Limits()[0].Cost != 4*whole || d.Taken != 1333 {
		t.Errorf("%+v, want a cost of 4 for 1.333", d)
	}
	r.Reset(t.Context(), one("k", l, 0))
	if d := take(9 * whole); !d.Allowed || d.Limits()[0].Cost != 10*whole {
		t.Errorf("%+v, want all that the bucket holds", d)
	}
	if d := take(11 * whole); d.Allowed || d.RetryAfter != bucket.Never || d.Limits()[0].Cost != 11*whole {
		t.Errorf("%+v, want never, at its own cost", d)
	}
	if d := take(0); d.Limits()[0].Cost != 0 {
		t.Errorf("%+v, want a cost of 0", d)
	}
	r.Reset(t.Context(), one("k", l, 0))
	factor = 0
	if d := take(2 * whole); d.Limits()[0].Cost != 2*whole {
		t.Errorf("%+v, want no less than the cost", d)
	}
}

func TestOnDecision_EveryMethodOnce(t *testing.T) {
	var seen []string
	r := newBare(t, mete.Config{OnDecision: func(_ context.Context, d *mete.Decision) { seen = append(seen, fmt.Sprint(d.Allowed)) }})
	l := limit(t, 1, "1/1h")
	for name, f := range map[string]func(context.Context, mete.Request) (mete.Decision, error){
		"take": r.Take, "take up to": r.TakeUpTo, "charge": r.Charge, "wait": r.Wait,
		"reserve": func(ctx context.Context, req mete.Request) (mete.Decision, error) {
			res, err := r.Reserve(ctx, req)
			return res.Decision, err
		},
	} {
		seen = nil
		r.Reset(t.Context(), one("k", l, 0))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		f(ctx, one("k", l, whole))
		f(ctx, one("k", l, 1<<51))
		cancel()
		if want := "[true false]"; name != "charge" && fmt.Sprint(seen) != want || len(seen) != 2 {
			t.Errorf("%s: the hook saw %v, want %s", name, seen, want)
		}
	}
}
