// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// An onlooker is a store that checks for forbidden writes, and fails while down is set.
type onlooker struct {
	mete.Store
	t       *testing.T
	looking bool
	down    bool
}

var errDown = errors.New("down")

func (s *onlooker) Take(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	if s.looking && !mode.DryRun && mode.MaxWait != bucket.Forced { // unless it is a debt of the time when it was down
		s.t.Fatalf("an explanation took %+v", charges)
	}
	if s.down {
		return dst, false, errDown
	}
	return s.Store.Take(ctx, dst, charges, mode)
}

// A bench is a limiter with random policies and checked explanations.
type bench struct {
	*testing.T
	policyMaker
	clock   *storetest.Clock
	store   *onlooker
	limiter *mete.Limiter
}

func newBench(t *testing.T, seed uint64) *bench {
	clock := storetest.NewClock()
	b := &bench{T: t, clock: clock, policyMaker: policyMaker{rand.New(testseed.PCG(seed, 6)), clock.Now().Time()}}
	mem, err := memstore.New(memstore.Config{Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	b.store = &onlooker{Store: mem, t: t}
	if seed%2 == 0 {
		b.store.Store = storetest.NewModel(clock.Now)
	}
	seen := func(string) {
		if b.store.looking {
			t.Fatal("an explanation called a hook")
		}
	}
	b.limiter, err = mete.New(b.store, b.matcher(t), mete.Config{
		Now: clock.Now, Local: storetest.NewModel(clock.Now), OnStoreError: policy.OnStoreError(seed % 3),
		OnDecision: func(context.Context, *mete.Decision) { seen("decision") }, OnDenial: func(context.Context, *mete.Denial) { seen("denial") },
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) explain(req mete.Request) mete.Explanation {
	b.Helper()
	b.store.looking = true
	defer func() { b.store.looking = false }()
	e, err := b.limiter.Explain(b.Context(), req)
	if err != nil {
		b.Fatal(err)
	}
	return e
}

// expires reports whether an override ends within d.
func (b *bench) expires(d time.Duration) bool {
	now := b.clock.Now().Time()
	return slices.ContainsFunc(b.limiter.Policy().Overrides(), func(o policy.Override) bool {
		return o.ExpiresAt.After(now) && !o.ExpiresAt.After(now.Add(d))
	})
}

// Explain returns the decision that Take then makes.
func TestExplain_IsWhatTakeDecides(t *testing.T) {
	counts := map[string]int{}
	for seed := range uint64(400) {
		b := newBench(t, seed)
		for step := range 40 {
			b.clock.Advance(b.Int64N(1 << (1 + b.IntN(24))))
			b.store.down = b.IntN(20) == 0
			req := b.request()
			req.Charges = b.charges(t)
			e := b.explain(req)
			if again := b.explain(req); !reflect.DeepEqual(e, again) {
				t.Fatalf("seed %d, step %d: explained twice:\n%+v\n%+v", seed, step, e, again)
			}
			consistent(t, &e)
			d, err := b.limiter.Take(t.Context(), req)
			if err != nil || !reflect.DeepEqual(d, e.Decision) {
				t.Fatalf("seed %d, step %d: %+v:\n explained %+v\n took      %+v, error %v", seed, step, req, e.Decision, d, err)
			}
			// The wait is exact only after a take, because a denial opens the account of a new limit.
			if wait := d.RetryAfter; wait > 0 && wait < time.Hour && b.IntN(2) == 0 && !d.Degraded && !b.expires(wait) {
				b.passes(req, &e)
				continue
			}
			count(counts, &e)
		}
	}
	for _, what := range []string{
		"allowed", "blocked", "missing_attribute", "store_error", "token_bucket_exceeded", "fixed_window_exceeded", "sliding_window_exceeded",
		"sliding_log_exceeded", "leaky_bucket_exceeded", "waits", "degraded", "shadow", "shadow denial", "partly in shadow", "several limits", "calm",
		"override limit", "override allow", "applies", "unmatched", "lacking", "denying", "exempt", "blocked rule", "taken", "unneeded", "disabled",
	} {
		if counts[what] < 20 {
			t.Errorf("only %d of what was explained was %s", counts[what], what)
		}
	}
}

// passes checks that the request passes after exactly its wait.
func (b *bench) passes(req mete.Request, was *mete.Explanation) {
	b.Helper()
	wait := was.Decision.RetryAfter
	b.clock.Advance(wait.Microseconds() - 1)
	if e := b.explain(req); e.Decision.Allowed || e.Decision.RetryAfter != time.Microsecond {
		b.Fatalf("%+v:\na microsecond before the end of %v: %+v", was.Decision, wait, e.Decision)
	}
	b.clock.Advance(1)
	if e := b.explain(req); !e.Decision.Allowed {
		b.Fatalf("after %v: %+v", wait, e.Decision)
	}
	if d, err := b.limiter.Take(b.Context(), req); err != nil || !d.Allowed {
		b.Fatalf("took after %v: %+v, error %v", wait, d, err)
	}
}

// consistent checks that an explanation does not contradict itself.
func consistent(t *testing.T, e *mete.Explanation) {
	t.Helper()
	var enforced, shadow []mete.Status
	for _, r := range e.Rules {
		if len(r.Accounts) != len(r.Matches) {
			t.Fatalf("rule %s has %d accounts of %d limits", r.Rule.Name, len(r.Accounts), len(r.Matches))
		}
		for _, a := range r.Accounts {
			switch {
			case !a.Asked:
			case r.Shadow:
				shadow = append(shadow, a.Status)
			default:
				enforced = append(enforced, a.Status)
			}
			if spent := a.Asked && a.Before != a.Snapshot; spent && (!a.Allowed || !e.Decision.Allowed) {
				t.Fatalf("%s was spent from by a request that was denied: %+v", a.Key, a)
			}
		}
	}
	for _, a := range e.Charges {
		if a.Asked {
			enforced = append(enforced, a.Status)
		}
	}
	if !slices.Equal(enforced, e.Decision.Limits()) || !slices.Equal(shadow, e.Decision.Shadow) {
		t.Fatalf("the accounts show\n%+v and in shadow %+v,\nthe decision\n%+v and %+v", enforced, shadow, e.Decision.Limits(), e.Decision.Shadow)
	}
}

// count counts the kinds of explanations.
func count(counts map[string]int, e *mete.Explanation) {
	add := func(what string, is bool) {
		if is {
			counts[what]++
		}
	}
	d := &e.Decision
	if d.Reason != "" {
		counts[d.Reason]++
	}
	add("allowed", d.Allowed)
	add("waits", d.Wait > 0)
	add("degraded", d.Degraded)
	add("several limits", len(d.Limits()) > 2)
	add("shadow", len(d.Shadow) > 0)
	add("calm", e.ShadowOverride != nil)
	add("override allow", d.Allowed && d.Override != nil)
	for _, s := range d.Shadow {
		add("shadow denial", !s.Allowed)
	}
	outcomes := []string{"applies", "unmatched", "lacking", "denying", "exempt", "blocked rule", "taken", "unneeded", "disabled"}
	for _, r := range e.Rules {
		counts[outcomes[r.Outcome]]++
		add("partly in shadow", r.Shadow && r.Rule.Mode.IsPartial())
		add("override limit", r.Outcome == policy.OutcomeApplies && r.Override != nil)
	}
}

// Rules and decision belong to one policy, even during a replacement.
func TestExplain_OnePolicy(t *testing.T) {
	r := newRig(t, nested)
	old := r.Policy()
	replace := lookup(func(policy.Attribute) (string, bool) {
		r.SetPolicy(load(t, `{"rules": [{"name": "other", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 1}}]}`))
		return "alice", true
	})
	e, err := r.Explain(t.Context(), mete.Request{Attributes: replace})
	if err != nil || e.Policy != old || len(e.Rules) != 2 || e.Rules[0].Rule != old.Rules()[0] || len(e.Decision.Limits()) != 2 {
		t.Errorf("%+v, error %v: want the policy that was there at the beginning", e, err)
	}
	if r.Policy() == old {
		t.Error("the policy was not replaced")
	}
}

type lookup func(policy.Attribute) (string, bool)

func (f lookup) Lookup(a policy.Attribute) (string, bool) { return f(a) }

func TestExplain_Invalid(t *testing.T) {
	r := newRig(t, nested)
	if _, err := r.Explain(t.Context(), mete.Request{Cost: -1}); !errors.Is(err, mete.ErrCost) {
		t.Errorf("a negative cost: error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Explain(ctx, mete.Request{}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: error %v", err)
	}
}

func TestExplain_WithoutPolicy(t *testing.T) {
	r := newBare(t, mete.Config{})
	e, err := r.Explain(t.Context(), one("k", limit(t, 5, "1/1s"), 2*whole))
	if err != nil || e.Policy != nil || e.Rules != nil || len(e.Charges) != 1 {
		t.Fatalf("%+v, error %v", e, err)
	}
	if a := e.Charges[0]; a.Key != "k" || a.Before.Remaining() != 5*whole || a.Remaining() != 3*whole || !a.Asked {
		t.Errorf("%+v", a)
	}
}

// Shards pay at random, but their total matches the explanation.
func TestExplain_Shards(t *testing.T) {
	r := newRig(t, `{"rules": [{"name": "hot", "limit_keys": [], "algorithm_config": {"rps": 10, "burst": 100, "shards": 4}}]}`)
	r.take(nil)
	e, err := r.Explain(t.Context(), mete.Request{Cost: 9})
	if err != nil || !e.Decision.Allowed {
		t.Fatalf("%+v, error %v", e, err)
	}
	if a := e.Rules[0].Accounts[0]; a.Before.Remaining() != 99*whole || a.Remaining() != 90*whole {
		t.Errorf("before %v, after %v; want 99 and 90", a.Before.Remaining(), a.Remaining())
	}
}
