// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/storetest"
)

// A rig is a limiter over a memory store with a stopped clock.
type rig struct {
	*testing.T
	*mete.Limiter
	clock *storetest.Clock
}

func load(tb testing.TB, text string) *policy.Matcher {
	tb.Helper()
	m, err := policy.Load([]byte(text), policy.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

func newRig(t *testing.T, text string) rig {
	t.Helper()
	clock := storetest.NewClock()
	store, err := memstore.New(memstore.Config{Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	l, err := mete.New(store, load(t, text), mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return rig{t, l, clock}
}

func (r rig) take(attrs mete.Attrs) mete.Decision {
	r.Helper()
	d, err := r.Take(r.Context(), mete.Request{Attributes: attrs})
	if err != nil {
		r.Fatal(err)
	}
	return d
}

// holds asserts the content of the limits of a request in the order of the policy.
func (r rig) holds(attrs mete.Attrs, want ...int64) {
	r.Helper()
	d, err := r.Peek(r.Context(), mete.Request{Attributes: attrs, Cost: 0.001})
	if err != nil || len(d.Limits()) != len(want) {
		r.Fatalf("peek %v: %d limits, error %v; want %d limits", attrs, len(d.Limits()), err, len(want))
	}
	for i, s := range d.Limits() {
		if got := s.Remaining().Whole(); got != want[i] {
			r.Errorf("%v: limit %q holds %d tokens, want %d", attrs, s.Limit.Name, got, want[i])
		}
	}
}

const nested = `{"rules": [
	{"name": "user", "limit_keys": ["header:x-user"], "algorithm_config": {"rps": 1, "burst": 5}},
	{"name": "global", "limit_keys": [], "algorithm_config": {"rate": "1/1m", "burst": 3}}
]}`

// G2, G3, G4: a request that one limit denies is charged to none, and waits for the longest of the denying limits.
func TestTake_AllOrNothing(t *testing.T) {
	r := newRig(t, nested)
	alice := mete.Attrs{"header:x-user": "alice"}
	for i := range 3 {
		if d := r.take(alice); !d.Allowed || d.RetryAfter != 0 || d.Reason != "" {
			t.Fatalf("take %d: %+v, want allowed", i, d)
		}
	}
	for range 10 {
		d := r.take(alice)
		if d.Allowed || d.Rule != "global" || d.Reason != "token_bucket_exceeded" || d.RetryAfter != time.Minute {
			t.Fatalf("take with the global bucket empty: %+v, want denied by global for 1m", d)
		}
		if len(d.Limits()) != 2 || d.Limits()[0].Rule.Name != "user" || !d.Limits()[0].Allowed || d.Limits()[1].Allowed {
			t.Fatalf("limits %+v: want user, which allows, and global, which denies", d.Limits())
		}
	}
	r.holds(alice, 2, 0)
	r.holds(mete.Attrs{"header:x-user": "bob"}, 5, 0)

	r.clock.Advance(60e6 - 1)
	if d := r.take(alice); d.Allowed || d.RetryAfter != time.Microsecond {
		t.Errorf("1 µs early: %+v, want denied for 1µs", d)
	}
	r.clock.Advance(1)
	if d := r.take(alice); !d.Allowed {
		t.Errorf("after the promised wait: %+v, want allowed", d)
	}
}

func TestTake_LongestWaitDecides(t *testing.T) {
	r := newRig(t, nested)
	for range 3 {
		r.take(mete.Attrs{"header:x-user": "alice"})
	}
	d, err := r.Take(t.Context(), mete.Request{Attributes: mete.Attrs{"header:x-user": "alice"}, Cost: 3})
	if err != nil || d.Rule != "global" || d.RetryAfter != 3*time.Minute {
		t.Errorf("cost 3: %+v, error %v; want denied by global for 3m", d, err)
	}
	// The user's bucket can never hold 6, which is longer than every other wait.
	d, err = r.Take(t.Context(), mete.Request{Attributes: mete.Attrs{"header:x-user": "alice"}, Cost: 6})
	if err != nil || d.Rule != "user" || d.RetryAfter != bucket.Never {
		t.Errorf("cost 6: %+v, error %v; want denied by user, never", d, err)
	}
}

func TestTake_FewestRemainingDecidesWhenAllowed(t *testing.T) {
	r := newRig(t, nested)
	if d := r.take(mete.Attrs{"header:x-user": "alice"}); d.Rule != "global" {
		t.Errorf("decided by %q, want global, which has 2 left", d.Rule)
	}
}

func TestTake_NoRuleApplies(t *testing.T) {
	r := newRig(t, `{"name": "user", "limit_keys": ["header:x-user"], "algorithm_config": {"rps": 1, "burst": 1}}`)
	for range 5 {
		if d := r.take(nil); !d.Allowed || d.Rule != "" || len(d.Limits()) != 0 {
			t.Fatalf("%+v, want allowed by no rule", d)
		}
	}
	if d, err := r.Take(t.Context(), mete.Request{}); err != nil || !d.Allowed {
		t.Errorf("the zero request: %+v, error %v; want allowed", d, err)
	}
}

func TestTake_MissingAttribute(t *testing.T) {
	r := newRig(t, `{"name": "user", "limit_keys": ["header:x-user"], "on_missing": "deny", "algorithm_config": {"rps": 1, "burst": 1}}`)
	d := r.take(nil)
	if d.Allowed || d.Rule != "user" || d.Reason != mete.ReasonMissingAttribute || d.RetryAfter != bucket.Never {
		t.Errorf("%+v, want denied by user for a missing attribute", d)
	}
}

func TestTake_InvalidCost(t *testing.T) {
	r := newRig(t, nested)
	for _, cost := range []bucket.Tokens{-1, bucket.MaxTokens + 1, -1 << 63} {
		if _, err := r.Take(t.Context(), mete.Request{Cost: mete.TokensOf(cost)}); !errors.Is(err, mete.ErrCost) {
			t.Errorf("cost %d: error %v, want ErrCost", cost, err)
		}
	}
}

func TestTake_ContextDone(t *testing.T) {
	r := newRig(t, nested)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Take(ctx, mete.Request{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	r.holds(nil, 3)
}

// G10: a shadow rule changes only the Shadow field.
func TestTake_ShadowIsSilent(t *testing.T) {
	const rules = `{"name": "user", "limit_keys": ["header:x-user"], "algorithm_config": {"rps": 1, "burst": 5}}`
	const shadows = `,{"name": "trial", "limit_keys": [], "mode": "shadow", "algorithm_config": {"rps": 1, "burst": 2}},
		{"name": "trial two", "limit_keys": ["header:x-user"], "group": "t", "mode": "shadow", "algorithm_config": {"rps": 1, "burst": 4}}`
	plain, shadowed := newRig(t, `{"rules": [`+rules+`]}`), newRig(t, `{"rules": [`+rules+shadows+`]}`)
	alice := mete.Attrs{"header:x-user": "alice"}
	for i := range 12 {
		want, got := plain.take(alice), shadowed.take(alice)
		if shadow := fmt.Sprint(got.Shadow); want.Allowed && len(got.Shadow) != 2 || !want.Allowed && len(got.Shadow) != 0 {
			t.Errorf("take %d: shadow %s; want both shadow rules exactly when allowed", i, shadow)
		} else if want.Allowed && (got.Shadow[0].Allowed != (i < 2) || got.Shadow[1].Allowed != (i < 4)) {
			t.Errorf("take %d: shadow %s; want the first to allow 2 and the second 4", i, shadow)
		}
		// Everything that an adapter could show is equal.
		got.Shadow = nil
		got.Limits()[0].Rule, got.Limits()[0].Limit = want.Limits()[0].Rule, want.Limits()[0].Limit
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("take %d: %+v with shadow rules, %+v without", i, got, want)
		}
	}
}

func TestRefundAndReset(t *testing.T) {
	r := newRig(t, nested)
	alice := mete.Attrs{"header:x-user": "alice"}
	for range 3 {
		r.take(alice)
	}
	if err := r.Refund(t.Context(), mete.Request{Attributes: alice, Cost: 2}); err != nil {
		t.Fatal(err)
	}
	r.holds(alice, 4, 2)
	r.take(alice)
	if err := r.Reset(t.Context(), mete.Request{Attributes: alice}); err != nil {
		t.Fatal(err)
	}
	r.holds(alice, 5, 3)
	if err := r.Refund(t.Context(), mete.Request{Cost: -1}); !errors.Is(err, mete.ErrCost) {
		t.Errorf("refund of a negative cost: error %v, want ErrCost", err)
	}
}

// A new policy keeps the state of buckets.
func TestSetPolicy_KeepsState(t *testing.T) {
	r := newRig(t, nested)
	alice := mete.Attrs{"header:x-user": "alice"}
	for range 3 {
		r.take(alice)
	}
	if err := r.SetPolicy(load(t, `{"rules": [
		{"name": "user", "limit_keys": ["header:x-user"], "algorithm_config": {"rps": 2, "burst": 50}},
		{"name": "global", "limit_keys": [], "algorithm_config": {"rate": "1/1m", "burst": 4}}]}`)); err != nil {
		t.Fatal(err)
	}
	r.holds(alice, 47, 1)
	if err := r.SetPolicy(nil); err == nil {
		t.Error("SetPolicy accepted nil")
	}
	r.holds(alice, 47, 1)
}

func TestNew_RequiresAStore(t *testing.T) {
	if _, err := mete.New(nil, load(t, nested), mete.Config{}); err == nil {
		t.Error("New accepted no store")
	}
}

// Policies are replaced during decisions: each request is decided by one of them.
func TestSetPolicy_WhileDeciding(t *testing.T) {
	r := newRig(t, nested)
	other := load(t, `{"name": "other", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 1000}}`)
	first := r.Policy()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				r.SetPolicy(other)
				r.SetPolicy(first)
			}
		}
	})
	for range 2000 {
		d := r.take(mete.Attrs{"header:x-user": "alice"})
		if n := len(d.Limits()); !(n == 2 || n == 1 && d.Limits()[0].Rule.Name == "other") {
			t.Errorf("a decision by %d limits mixes two policies", n)
			break
		}
	}
	close(stop)
	wg.Wait()
}

func TestOnDecision(t *testing.T) {
	var seen []string
	store := storetest.NewModel(storetest.NewClock().Now)
	l, err := mete.New(store, load(t, nested), mete.Config{OnDecision: func(_ context.Context, d *mete.Decision) {
		seen = append(seen, fmt.Sprintf("%v %s", d.Allowed, d.Rule))
	}})
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		l.Take(t.Context(), mete.Request{})
		l.Peek(t.Context(), mete.Request{})
	}
	if got, want := fmt.Sprint(seen), "[true global true global true global false global]"; got != want {
		t.Errorf("the hook saw %s, want %s", got, want)
	}
}

// The hook gets the rules that a request skips because of a missing attribute. Peeks, and the decision that
// Take returns, do not.
func TestOnDecision_Skipped(t *testing.T) {
	const rules = `{"rules": [
		{"name": "key", "limit_keys": ["header:x-api-key"], "algorithm_config": {"rate": "1/1h", "burst": 5}},
		{"name": "all", "limit_keys": [], "algorithm_config": {"rate": "1/1h", "burst": 1}}]}`
	var seen []string
	l, err := mete.New(storetest.NewModel(storetest.NewClock().Now), load(t, rules), mete.Config{OnDecision: func(_ context.Context, d *mete.Decision) {
		text := fmt.Sprint(d.Allowed)
		for _, r := range d.Skipped {
			text += " " + r.Name
		}
		seen = append(seen, text)
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, attrs := range []mete.Attrs{nil, {"header:x-api-key": "k"}, nil} {
		if _, err := l.Peek(t.Context(), mete.Request{Attributes: attrs}); err != nil {
			t.Fatal(err)
		}
		if d, err := l.Take(t.Context(), mete.Request{Attributes: attrs}); err != nil || d.Skipped != nil {
			t.Fatalf("got %v skipped (%v), want none", d.Skipped, err)
		}
	}
	if want := []string{"true key", "false", "false key"}; !slices.Equal(seen, want) {
		t.Errorf("got %q, want %q", seen, want)
	}
}
