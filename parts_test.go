// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

const partRules = `{"rules": [
	{"name": "user", "limit_keys": ["user"], "algorithm_config": {"rate": "1/1h", "burst": 5}},
	{"name": "model", "match": {"model": ["a", "b", "c"]}, "limit_keys": ["model"], "algorithm_config": {"rate": "1/1h", "burst": 8}},
	{"name": "heavy", "limit_keys": ["model"], "group": "x", "algorithm_config": {"rate": "1/1h", "burst": 20}}
]}`

func partOf(name string) mete.Part { return mete.Part{Attributes: mete.Attrs{"user": name}} }

func (r rig) takeParts(parts ...mete.Part) mete.Decision {
	r.Helper()
	return r.do("take", func() (mete.Decision, error) { return r.Take(r.Context(), mete.Request{Parts: parts}) })
}

const userRule = `{"rules": [{"name": "user", "limit_keys": ["user"], "algorithm_config": {"rate": "1/1h", "burst": 5}}]}`

func TestParts_OneTake(t *testing.T) {
	r := newRig(t, userRule)
	alice, bob := partOf("alice"), partOf("bob")
	alice.Cost = 4
	d := r.takeParts(alice, bob, mete.Part{})
	if limits := d.Limits(); !d.Allowed || len(limits) != 2 || !limits[0].HasPart(0) || limits[0].HasPart(1) || !limits[1].HasPart(1) || d.Part() != 0 || d.Taken != 4*whole {
		t.Fatalf("%+v: want a limit for each of two parts", d)
	}
	d = r.takeParts(bob, alice)
	if d.Allowed || d.Part() != 1 || d.RetryAfter != 3*time.Hour {
		t.Errorf("%+v: want a denial of the second part, with its wait", d)
	}
	r.holds(mete.Attrs{"user": "bob"}, 4) // the denial charged nothing
	r.holds(mete.Attrs{"user": "alice"}, 1)
}

// Parts with one bucket add their costs up: they pass together or not at all.
func TestParts_EqualBuckets(t *testing.T) {
	r := newRig(t, userRule)
	three := partOf("alice")
	three.Cost = 3
	d := r.takeParts(three, three)
	if s := d.Limits(); d.Allowed || len(s) != 1 || s[0].Cost != 6*whole || !s[0].HasPart(0) || !s[0].HasPart(1) || d.RetryAfter != bucket.Never {
		t.Errorf("%+v: want one status of 6 tokens for both parts", d)
	}
	if d := r.takeParts(three, partOf("alice"), partOf("alice")); !d.Allowed {
		t.Errorf("%+v: want 5 tokens allowed", d)
	}
	r.holds(mete.Attrs{"user": "alice"}, 0)
}

func TestParts_Look(t *testing.T) {
	r := newRig(t, userRule)
	look := partOf("alice")
	look.Look = true
	for range 3 {
		if d := r.takeParts(look); !d.Allowed || d.Limits()[0].Cost != 0 {
			t.Fatalf("%+v: want a look that costs nothing", d)
		}
	}
	r.holds(mete.Attrs{"user": "alice"}, 5)
	spend := mete.Request{Parts: []mete.Part{partOf("alice")}}
	for range 6 {
		if d := r.do("charge", func() (mete.Decision, error) { return r.Charge(r.Context(), spend) }); !d.Allowed {
			t.Fatalf("%+v", d)
		}
	}
	if d := r.takeParts(look, partOf("bob")); d.Allowed || d.Part() != 0 {
		t.Errorf("%+v: want a look denied while the bucket is in debt", d)
	}
}

func TestParts_Errors(t *testing.T) {
	r := newRig(t, userRule)
	many := make([]mete.Part, mete.MaxParts+1)
	for i := range many {
		many[i] = partOf(fmt.Sprint(i))
	}
	huge := partOf("a")
	huge.Cost = mete.TokensOf(bucket.MaxTokens)
	several := newRig(t, `{"rules": [
		{"name": "a", "limit_keys": ["user"], "algorithm_config": {"rate": "1/1h", "burst": 5}},
		{"name": "b", "group": "b", "limit_keys": ["user"], "algorithm_config": {"rate": "1/1h", "burst": 5}}]}`)
	for name, c := range map[string]struct {
		rig  rig
		req  mete.Request
		want error
	}{
		"too many parts":   {r, mete.Request{Parts: many}, mete.ErrRequest},
		"attributes":       {r, mete.Request{Parts: many[:1], Attributes: mete.Attrs{}}, mete.ErrRequest},
		"cost":             {r, mete.Request{Parts: many[:1], Cost: 1}, mete.ErrRequest},
		"bad cost":         {r, mete.Request{Parts: []mete.Part{{Cost: -1}}}, mete.ErrCost},
		"look with a cost": {r, mete.Request{Parts: []mete.Part{{Cost: 1, Look: true}}}, mete.ErrRequest},
		"sum":              {r, mete.Request{Parts: []mete.Part{huge, huge}}, mete.ErrCost},
		"too many buckets": {several, mete.Request{Parts: many[:store.MaxCharges/2+1]}, mete.ErrRequest},
	} {
		if _, err := c.rig.Take(t.Context(), c.req); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if _, err := r.Explain(t.Context(), mete.Request{Parts: many[:1]}); !errors.Is(err, mete.ErrRequest) {
		t.Errorf("explain: %v, want ErrRequest", err)
	}
	if d := r.takeParts(many[:mete.MaxParts]...); !d.Allowed || len(d.Limits()) != mete.MaxParts || !d.Limits()[63].HasPart(63) {
		t.Errorf("64 parts: %v with %d limits", d.Allowed, len(d.Limits()))
	}
}

// A verdict of the policy about one part denies the request, and an override that allows a part exempts only it.
func TestParts_Verdicts(t *testing.T) {
	r := newRig(t, `{"rules": [
		{"name": "user", "limit_keys": ["user"], "algorithm_config": {"rate": "1/1h", "burst": 2}},
		{"name": "tenant", "match": {"kind": "tenant"}, "limit_keys": ["tenant"], "on_missing": "deny", "algorithm_config": {"rate": "1/1h", "burst": 5}}],
		"overrides": [
		{"id": "bad", "action": "block", "reason": "r", "author": "a", "expires_at": "2999-01-01T00:00:00Z", "match": {"user": "mallory"}},
		{"id": "good", "action": "allow", "reason": "r", "author": "a", "expires_at": "2999-01-01T00:00:00Z", "match": {"user": "vip"}}]}`)
	if d := r.takeParts(partOf("alice"), partOf("mallory")); d.Allowed || d.Reason != mete.ReasonBlocked || d.Part() != 1 || d.Override.ID != "bad" {
		t.Errorf("block: %+v", d)
	}
	if d := r.takeParts(partOf("alice"), mete.Part{Attributes: mete.Attrs{"kind": "tenant"}}); d.Allowed || d.Reason != mete.ReasonMissingAttribute || d.Part() != 1 {
		t.Errorf("missing: %+v", d)
	}
	r.holds(mete.Attrs{"user": "alice"}, 2)
	if d := r.takeParts(partOf("vip"), partOf("alice")); !d.Allowed || d.Override.ID != "good" || len(d.Limits()) != 1 || !d.Limits()[0].HasPart(1) {
		t.Errorf("allow: %+v", d)
	}
	if d := r.take(mete.Attrs{"user": "mallory"}); d.Part() != -1 {
		t.Errorf("part %d without parts, want -1", d.Part())
	}
}

// A break glass without conditions applies to every part, and suspends the charges of the request too.
func TestParts_BreakGlass(t *testing.T) {
	r := newRig(t, `{"rules": [{"name": "user", "limit_keys": ["user"], "algorithm_config": {"rate": "1/1h", "burst": 1}}],
		"break_glass": {"reason": "r", "expires_at": "2999-01-01T00:00:00Z"}}`)
	req := mete.Request{Parts: []mete.Part{partOf("a"), partOf("a")}, Charges: []mete.Charge{{Key: "own", Limit: limit(t, 1, "1/1h"), Cost: 2}}}
	if d := r.do("take", func() (mete.Decision, error) { return r.Take(r.Context(), req) }); !d.Allowed || len(d.Limits()) != 0 || d.Override == nil {
		t.Errorf("%+v: want all limits suspended", d)
	}
}

func TestParts_Shadow(t *testing.T) {
	r := newRig(t, `{"rules": [
		{"name": "a", "limit_keys": ["user"], "mode": "shadow", "group": "a", "algorithm_config": {"rate": "1/1h", "burst": 1}},
		{"name": "b", "limit_keys": ["user"], "mode": "shadow", "group": "b", "algorithm_config": {"rate": "1/1h", "burst": 9}}]}`)
	if d := r.takeParts(partOf("alice"), partOf("bob"), partOf("alice")); !d.Allowed || len(d.Shadow) != 4 || d.Shadow[0].Allowed || !d.Shadow[0].HasPart(2) || !d.Shadow[1].Allowed || !d.Shadow[3].HasPart(1) {
		t.Errorf("%+v: want shadow limits by rule", d)
	}
	many := make([]mete.Part, mete.MaxParts)
	for i := range many {
		many[i] = partOf(fmt.Sprint(i))
	}
	if d := r.takeParts(many...); len(d.Shadow) != 2*mete.MaxParts {
		t.Errorf("%d shadow limits, want %d", len(d.Shadow), 2*mete.MaxParts)
	}
	req := mete.Request{Parts: many}
	if err := r.Refund(t.Context(), req); err != nil {
		t.Error(err)
	}
	if d := r.takeParts(many[0]); !d.Shadow[0].Allowed {
		t.Errorf("%+v after a refund", d.Shadow)
	}
}

func TestParts_Hooks(t *testing.T) {
	var denied, near []string
	var skipped int
	name := func(list *[]string) func(context.Context, *mete.Denial) {
		return func(_ context.Context, d *mete.Denial) {
			attrs, _ := d.Attributes.(mete.Attrs)
			*list = append(*list, attrs["user"])
		}
	}
	clock := storetest.NewClock()
	l, err := mete.New(storetest.NewModel(clock.Now), load(t, userRule), mete.Config{
		OnDenial: name(&denied), OnNearLimit: name(&near), OnDecision: func(_ context.Context, d *mete.Decision) { skipped += len(d.Skipped) },
	})
	if err != nil {
		t.Fatal(err)
	}
	r := rig{t, l, clock}
	four, five := partOf("bob"), partOf("bob")
	four.Cost, five.Cost = 4, 5
	r.takeParts(partOf("alice"), four, mete.Part{}, mete.Part{})
	r.takeParts(partOf("alice"), five)
	if fmt.Sprint(denied, near, skipped) != "[bob] [bob] 1" {
		t.Errorf("denied %v, near %v, %d skipped: want bob, bob, 1", denied, near, skipped)
	}
}

func TestParts_Outage(t *testing.T) {
	c := start(t, 1, `
		{"name": "open", "match": {"kind": "open"}, "limit_keys": ["user"], "algorithm_config": {"rate": "1/1h", "burst": 4}},
		{"name": "closed", "match": {"kind": "closed"}, "limit_keys": ["user"], "on_store_error": "closed", "algorithm_config": {"rate": "1/1h", "burst": 4}},
		{"name": "local", "match": {"kind": "local"}, "limit_keys": ["user"], "on_store_error": "local", "algorithm_config": {"rate": "1/1h", "burst": 4}}`)
	part := func(kind string) mete.Part { return mete.Part{Attributes: mete.Attrs{"kind": kind, "user": "a"}} }
	c.cut(down)
	r := rig{t, c.nodes[0].Limiter, c.clock}
	if d := r.takeParts(part("open"), part("closed"), part("local")); d.Allowed || d.Reason != mete.ReasonStoreError || d.Part() != 1 {
		t.Errorf("closed: %+v", d)
	}
	for i := range 5 {
		d := r.takeParts(part("open"), part("local"))
		if d.Allowed != (i < 4) || !d.Degraded || len(d.Limits()) != 1 || !d.Limits()[0].HasPart(1) || d.Part() != 1 {
			t.Errorf("local %d: %+v", i, d)
		}
	}
}

func TestParts_ReserveSettle(t *testing.T) {
	r := newRig(t, `{"rules": [
		{"name": "user", "limit_keys": ["user"], "algorithm_config": {"rate": "1/1h", "burst": 9}},
		{"name": "calls", "limit_keys": ["model"], "algorithm_config": {"rate": "1/1h", "burst": 9}}]}`)
	four := partOf("alice")
	four.Cost = 4
	req := mete.Request{ID: "r1", Parts: []mete.Part{four, partOf("alice"), {Attributes: mete.Attrs{"model": "m"}}}}
	res, err := r.Reserve(t.Context(), req)
	if err != nil || !res.Allowed {
		t.Fatal(res, err)
	}
	if again := r.do("retry", func() (mete.Decision, error) { return r.Take(t.Context(), req) }); !again.Allowed {
		t.Error(again)
	}
	r.holds(mete.Attrs{"user": "alice"}, 4) // the retry has cost nothing
	if err := res.Settle(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	r.holds(mete.Attrs{"user": "alice"}, 6) // 2 used, and the rule's own cost stays
	r.holds(mete.Attrs{"model": "m"}, 8)
	again, err := r.Reserve(t.Context(), mete.Request{Parts: req.Parts})
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.holds(mete.Attrs{"user": "alice"}, 6)
	r.holds(mete.Attrs{"model": "m"}, 8)
	if err := r.Refund(t.Context(), mete.Request{Parts: req.Parts[1:]}); err != nil {
		t.Fatal(err)
	}
	r.holds(mete.Attrs{"user": "alice"}, 7)
	if d := r.do("peek", func() (mete.Decision, error) { return r.Peek(t.Context(), mete.Request{Parts: req.Parts}) }); !d.Allowed {
		t.Error(d)
	}
	r.holds(mete.Attrs{"user": "alice"}, 7)
}

func TestParts_Shards(t *testing.T) {
	r := newRig(t, `{"rules": [{"name": "user", "limit_keys": ["user"], "algorithm_config": {"rate": "1000/1h", "burst": 1000, "shards": 16}}]}`)
	if d := r.takeParts(partOf("a"), partOf("b"), partOf("a")); !d.Allowed || len(d.Limits()) != 2 {
		t.Errorf("%+v", d)
	}
	if _, err := r.Take(t.Context(), mete.Request{Parts: []mete.Part{partOf("a"), partOf("b"), partOf("c"), partOf("d")}}); !errors.Is(err, mete.ErrRequest) {
		t.Errorf("64 shards: %v, want ErrRequest", err)
	}
}

// A request with parts passes if all parts would pass one after the other, and only then. A denied request changes
// nothing.
func TestParts_RandomLikeSeparateRequests(t *testing.T) {
	random := rand.New(testseed.PCG(21, 1))
	together, apart := newRig(t, partRules), newRig(t, partRules)
	names, denied := []string{"", "a", "b", "c"}, 0
	for step := range 3000 {
		parts := make([]mete.Part, random.IntN(6)+1)
		for i := range parts {
			attrs := mete.Attrs{}
			for _, key := range []string{"user", "model"} {
				if name := names[random.IntN(len(names))]; name != "" {
					attrs[key] = name
				}
			}
			if random.IntN(4) == 0 {
				attrs["weight"] = fmt.Sprint(random.IntN(4))
			}
			parts[i] = mete.Part{Attributes: attrs, Cost: mete.Tokens(random.IntN(4))}
		}
		want := true
		var passed []*mete.Reservation
		for _, p := range parts {
			res, err := apart.Reserve(t.Context(), mete.Request{Attributes: p.Attributes, Cost: p.Cost})
			if err != nil {
				t.Fatal(err)
			}
			if want = res.Allowed; !want {
				break
			}
			passed = append(passed, res)
		}
		if !want {
			denied++
			for _, res := range passed {
				if err := res.Cancel(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		if d := together.takeParts(parts...); d.Allowed != want {
			t.Fatalf("step %d: %+v: allowed %v, want %v", step, parts, d.Allowed, want)
		}
		if random.IntN(2) == 0 {
			micros := random.Int64N(4 * 3600e6)
			together.clock.Advance(micros)
			apart.clock.Advance(micros)
		}
	}
	if denied < 300 || denied > 2700 {
		t.Errorf("%d of 3000 denied: the test tells nothing", denied)
	}
}

func TestParts_Allocations(t *testing.T) {
	if raceEnabled {
		return // pools lose what they hold on purpose then
	}
	r := newRig(t, userRule)
	parts := []mete.Part{partOf("alice"), partOf("bob"), partOf("carol")}
	req := mete.Request{Parts: parts}
	if n := testing.AllocsPerRun(1000, func() {
		if _, err := r.Take(context.Background(), req); err != nil {
			t.Fatal(err)
		}
	}); n > 1 {
		t.Errorf("%v allocations for three parts, want at most 1 for the statuses", n)
	}
}
