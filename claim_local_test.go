// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/metehq/mete"
)

// A take is in flight until the store answers. Its cost counts once in an outage that begins during the shadow
// takes.
func TestLocal_AnsweredTakeIsNotInFlight(t *testing.T) {
	c := start(t, 1, `{"name": "all", "group": "a", "limit_keys": [], "on_store_error": "local", "algorithm_config": {"rate": "1/1h", "burst": 10}},
		{"name": "trial", "group": "b", "limit_keys": [], "mode": "shadow", "algorithm_config": {"rate": "1/1h", "burst": 10}}`)
	n, asked := c.nodes[0], 0
	n.line.hook = func(mete.Mode) {
		if asked++; asked != 2 { // the second call is for the shadow rule
			return
		}
		n.line.cut(down)
		if d := n.take(4); !d.Allowed || !d.Degraded || d.Limits()[0].Remaining() != whole {
			t.Errorf("4 of the 5 that are left: %+v, want allowed locally with 1 left", d)
		}
	}
	if d := n.take(5); !d.Allowed || d.Degraded {
		t.Fatalf("5 of 10: %+v, want allowed by the store", d)
	}
	if asked < 2 {
		t.Error("the shadow rule was not asked")
	}
}

// G1: a rolled-back reset changes nothing. The limiter still knows the deficit for an outage.
func TestReset_InATransactionForgetsNothing(t *testing.T) {
	n, _, ctx := joiner(t)
	if got := n.tries(t.Context(), 9); got != 9 {
		t.Fatalf("%d of 9 admitted", got)
	}
	if err := n.Reset(ctx, mete.Request{}); err != nil {
		t.Fatal(err)
	}
	n.line.cut(down)
	if got := n.tries(t.Context(), 20); got != 1 {
		t.Errorf("%d more admitted locally after the rollback, want 1", got)
	}
}

// A peek adds no local cost, under its own limit and under another version's.
func TestLocal_PeekIsNotSpent(t *testing.T) {
	left := func(peeks int, then string) int {
		n := start(t, 1, localRule).nodes[0]
		policies := map[string]string{"same": localRule, "other": strings.Replace(localRule, `"burst": 10`, `"burst": 20`, 1)}
		n.take(2)
		if err := n.SetPolicy(load(t, policies["other"])); err != nil {
			t.Fatal(err)
		}
		n.take(1)
		for range peeks {
			if d, err := n.Peek(t.Context(), mete.Request{Cost: 4}); err != nil || !d.Allowed {
				t.Fatalf("%+v, error %v", d, err)
			}
		}
		if err := n.SetPolicy(load(t, policies[then])); err != nil {
			t.Fatal(err)
		}
		n.line.cut(down)
		return n.drain()
	}
	for _, then := range []string{"same", "other"} {
		if got, want := left(3, then), left(0, then); got != want || got == 0 {
			t.Errorf("%s policy: %d are left for an outage after peeks, want %d as without", then, got, want)
		}
	}
}

// A rule with on_store_error: local denies a request if the local store fails, too.
func TestLocal_BothStoresFail(t *testing.T) {
	gone := errors.New("gone")
	l, err := mete.New(brokenStore{gone}, load(t, localRule), mete.Config{Local: brokenStore{gone}})
	if err != nil {
		t.Fatal(err)
	}
	d, err := l.Take(t.Context(), mete.Request{})
	if err != nil || d.Allowed || !d.Degraded || d.Rule != "all" || d.Reason != mete.ReasonStoreError || d.RetryAfter <= 0 {
		t.Errorf("%+v, error %v; want refused by the rule for want of a store", d, err)
	}
}

// After a TakeUpTo, the limiter remembers the taken part instead of the whole cost.
func TestLocal_PartIsSpent(t *testing.T) {
	left := func(take func(*node) (mete.Decision, error)) int {
		n := start(t, 1, localRule).nodes[0]
		n.take(1)
		if err := n.SetPolicy(load(t, strings.Replace(localRule, `"burst": 10`, `"burst": 9`, 1))); err != nil {
			t.Fatal(err)
		}
		if d, err := take(n); err != nil || d.Taken != 8*whole {
			t.Fatalf("%+v, error %v; want 8", d, err)
		}
		if err := n.SetPolicy(load(t, localRule)); err != nil {
			t.Fatal(err)
		}
		n.line.cut(down)
		return n.drain()
	}
	all := left(func(n *node) (mete.Decision, error) { return n.Take(t.Context(), mete.Request{Cost: 8}) })
	part := left(func(n *node) (mete.Decision, error) { return n.TakeUpTo(t.Context(), mete.Request{Cost: 12}) })
	if all != part || all == 0 {
		t.Errorf("%d are left for an outage after TakeUpTo, %d after Take, of as much; want the same", part, all)
	}
}
