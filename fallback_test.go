// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

func TestNew_LocalNeedsAStore(t *testing.T) {
	store := storetest.NewModel(storetest.NewClock().Now)
	local, open := load(t, localRule), load(t, strings.Replace(localRule, "local", "open", 1))
	shadow := load(t, strings.Replace(localRule, `"name"`, `"mode": "shadow", "name"`, 1))
	if _, err := mete.New(store, local, mete.Config{}); err == nil || !strings.Contains(err.Error(), `rule "all": on_store_error: local requires Config.Local`) {
		t.Errorf("New: error %v", err)
	}
	if _, err := mete.New(store, nil, mete.Config{OnStoreError: policy.OnStoreErrorLocal}); err == nil {
		t.Error("New with OnStoreError: no error")
	}
	l, err := mete.New(store, open, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.SetPolicy(local); err == nil || l.Policy() != open {
		t.Errorf("SetPolicy: error %v, and the policy in force is another: %v", err, l.Policy() != open)
	}
	if err := l.SetPolicy(shadow); err != nil {
		t.Errorf("SetPolicy of a rule that has no say: %v", err)
	}
	for _, d := range []time.Duration{-1, time.Microsecond, 11 * time.Second} {
		if _, err := mete.New(store, open, mete.Config{Deadline: d}); err == nil {
			t.Errorf("New with a deadline of %v: no error", d)
		}
	}
}

func TestLocal_TakesItsShare(t *testing.T) {
	c := start(t, 2, localRule)
	c.cut(down)
	for i, n := range c.nodes {
		if got := n.drain(); got != 5 {
			t.Errorf("node %d got %d, want 5 of 10", i, got)
		}
	}
	d := c.nodes[0].take(1)
	if d.Allowed || d.Reason != "token_bucket_exceeded" || d.Rule != "all" || d.RetryAfter != 2*time.Second ||
		!d.Degraded || d.Failure != store.FailureUnavailable || !errors.Is(d.Err, store.ErrUnavailable) || len(d.Limits()) != 1 || d.Limits()[0].Remaining() != 0 {
		t.Errorf("%+v", d)
	}
	c.clock.Advance(d.RetryAfter.Microseconds() - 1)
	if c.nodes[0].take(1).Allowed {
		t.Error("allowed a microsecond before retry-after")
	}
	c.clock.Advance(1)
	if d := c.nodes[0].take(1); !d.Allowed || d.Reason != "" || d.Taken != bucket.Token {
		t.Errorf("after retry-after: %+v", d)
	}
}

// A local bucket starts with its share of the deficit.
func TestLocal_BeginsWithWhatIsMissing(t *testing.T) {
	c := start(t, 2, localRule)
	c.nodes[0].take(5)
	c.nodes[1].take(4)
	c.cut(silent)
	c.advance(3)
	for i, want := range []int{4, 2} { // 5 and 9 were missing when they last looked, and now are 2 and 6
		if got := c.nodes[i].drain(); got != want {
			t.Errorf("node %d got %d of its 5, want %d", i, got, want)
		}
	}
}

// A full local bucket admits a cost above its share.
func TestLocal_CostAboveTheShare(t *testing.T) {
	c := start(t, 5, localRule)
	c.cut(down)
	if d := c.nodes[0].take(6); !d.Allowed {
		t.Errorf("6 of 10, shared by 5 nodes: %+v", d)
	}
	if d := c.nodes[0].take(6); d.Allowed || d.RetryAfter != 30*time.Second {
		t.Errorf("6 more at a fifth of a token a second: allowed %v, retry after %v; want 30s", d.Allowed, d.RetryAfter)
	}
	if d := c.nodes[0].take(11); d.Allowed || d.RetryAfter != bucket.Never {
		t.Errorf("11 of 10: allowed %v, retry after %v; want never", d.Allowed, d.RetryAfter)
	}
}

// With different on_store_error, closed denies, open has no effect, and all local rules are charged or none.
func TestLocal_AmongOthers(t *testing.T) {
	rule := func(name, then string, burst string) string {
		return `{"name": "` + name + `", "group": "` + name + `", "limit_keys": [], "on_store_error": "` + then + `", "algorithm_config": {"rps": 1, "burst": ` + burst + `}}`
	}
	c := start(t, 1, rule("o", "open", "1")+","+rule("b", "local", "3")+","+rule("a", "local", "5"))
	n := c.nodes[0]
	c.cut(down)
	if got := n.drain(); got != 3 {
		t.Errorf("got %d, want the 3 of the smaller local rule", got)
	}
	d := n.take(1)
	if d.Rule != "b" || len(d.Limits()) != 2 || d.Limits()[0].Rule.Name != "b" || d.Limits()[1].Remaining() != 2*bucket.Token {
		t.Errorf("denied by %q, limits %+v; want b, then a with 2 left", d.Rule, d.Limits())
	}
	if got, want := n.Stats(), (mete.Stats{Local: 5, LetThrough: 3000, SpentLocally: 6000, Unsettled: 2}); got != want {
		t.Errorf("stats %+v, want %+v", got, want)
	}
	c = start(t, 1, rule("c", "closed", "5")+","+rule("a", "local", "5"))
	c.cut(down)
	if d := c.nodes[0].take(1); d.Allowed || d.Rule != "c" || d.Reason != mete.ReasonStoreError || len(d.Limits()) != 0 {
		t.Errorf("with a closed rule: %+v", d)
	}
	if got, want := c.nodes[0].Stats(), (mete.Stats{Closed: 1}); got != want {
		t.Errorf("stats %+v, want %+v", got, want)
	}
}

// The request's own charges follow Config.OnStoreError.
func TestLocal_OwnCharges(t *testing.T) {
	clock := storetest.NewClock()
	store := &wire{Store: storetest.NewModel(clock.Now)}
	l, err := mete.New(store, nil, mete.Config{OnStoreError: policy.OnStoreErrorLocal, Local: storetest.NewModel(clock.Now), Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	store.cut(down)
	req := mete.Request{Charges: []mete.Charge{{Key: "k", Limit: limit(t, 2, "1/1s"), Cost: 1, Shards: 2}}}
	for i, want := range []bool{true, true, false} {
		d, err := l.Take(t.Context(), req)
		if err != nil || d.Allowed != want || !d.Degraded || len(d.Limits()) != 1 {
			t.Errorf("take %d: %+v, error %v; want allowed %v", i, d, err, want)
		}
	}
	store.cut(up)
	if d, err := l.Take(t.Context(), req); err != nil || d.Allowed || d.Degraded {
		t.Errorf("on recovery: %+v, error %v; want denied by the store", d, err)
	}
}

func TestLocal_PeekAndUpToAndID(t *testing.T) {
	c := start(t, 2, localRule)
	n := c.nodes[0]
	c.cut(down)
	peek, err := n.Peek(t.Context(), mete.Request{})
	if err != nil || !peek.Allowed || !peek.Degraded || peek.Limits()[0].Remaining() != 5*bucket.Token {
		t.Errorf("peek: %+v, error %v", peek, err)
	}
	for range 2 {
		if d, err := n.Take(t.Context(), mete.Request{ID: "once"}); err != nil || !d.Allowed || d.Limits()[0].Remaining() != 4*bucket.Token {
			t.Errorf("take by ID: %+v, error %v; want 4 remaining", d, err)
		}
	}
	if d, err := n.TakeUpTo(t.Context(), mete.Request{Cost: 7}); err != nil || d.Taken != 4*bucket.Token {
		t.Errorf("up to 7: %+v, error %v; want 4", d, err)
	}
	if got, want := n.Stats().SpentLocally, 5*bucket.Token; got != want {
		t.Errorf("spent %v locally, want %v", got, want)
	}
}

func TestFailure(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want store.Failure
	}{
		{context.DeadlineExceeded, store.FailureTimeout},
		{store.ErrUnavailable, store.FailureUnavailable},
		{store.ErrOverloaded, store.FailureOverloaded},
		{errors.New("connection refused"), store.FailureError},
	} {
		store := brokenStore{&mete.StoreError{Op: "take", Store: "test", Err: tc.err}}
		l, err := mete.New(store, load(t, strings.Replace(localRule, "local", "open", 1)), mete.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if d, err := l.Take(t.Context(), mete.Request{}); err != nil || !d.Degraded || d.Failure != tc.want {
			t.Errorf("%v: failure %q, error %v; want %q", tc.err, d.Failure, err, tc.want)
		}
	}
}

// The store call has the shortest deadline of the enforced rules.
func TestTake_Within(t *testing.T) {
	clock := storetest.NewClock()
	var got time.Duration
	store := &wire{Store: storetest.NewModel(clock.Now), hook: func(m mete.Mode) { got = m.Within }}
	rule := func(name, more string) string {
		return `{"name": "` + name + `", "group": "` + name + `", "limit_keys": [], ` + more + ` "algorithm_config": {"rps": 1, "burst": 100}}`
	}
	own := []mete.Charge{{Key: "own", Limit: limit(t, 2, "1/1s")}}
	for _, tc := range []struct {
		rules    string
		charges  []mete.Charge
		deadline time.Duration
		want     time.Duration
	}{
		{rule("a", ""), nil, 0, policy.DefaultDeadline},
		{rule("a", `"deadline": "2s",`), nil, 0, 2 * time.Second},
		{rule("a", `"deadline": "2s",`) + "," + rule("b", `"deadline": "20ms",`), nil, 0, 20 * time.Millisecond},
		{rule("a", `"deadline": "2s",`), own, 0, policy.DefaultDeadline},
		{rule("a", `"deadline": "2s",`), own, time.Second, time.Second},
		{rule("a", `"deadline": "2s", "mode": "shadow",`), nil, 0, 2 * time.Second},
	} {
		l, err := mete.New(store, load(t, `{"rules": [`+tc.rules+`]}`), mete.Config{Deadline: tc.deadline})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Take(t.Context(), mete.Request{Charges: tc.charges}); err != nil || got != tc.want {
			t.Errorf("%s with %d charges: within %v, error %v; want %v", tc.rules, len(tc.charges), got, err, tc.want)
		}
	}
}

// Shadow rules do not wait one after another for a store that hangs.
func TestTake_ShadowsWaitOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rule := func(name string) string {
			return `{"name": "` + name + `", "group": "` + name + `", "mode": "shadow", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 1}}`
		}
		c := start(t, 1, rule("a")+","+rule("b")+","+rule("c"))
		n := c.nodes[0]
		n.line.hook = func(m mete.Mode) { time.Sleep(m.Within) }
		c.cut(silent)
		began := time.Now()
		if d := n.take(1); !d.Allowed || d.Degraded || time.Since(began) > policy.DefaultDeadline {
			t.Errorf("%+v after %v, want one that is allowed after a deadline", d, time.Since(began))
		}
	})
}
