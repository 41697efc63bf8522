// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
)

// G1: an outage splits a reservation into a local part and a part in the store. Repeating a failed cancellation
// returns the local part once.
func TestReserve_LocalCanceledAgain(t *testing.T) {
	const rule = `{"name": "NAME", "group": "NAME", "limit_keys": ["header:NAME"], "on_store_error": "local", "algorithm_config": {"rate": "1/1h", "burst": 10}}`
	c := start(t, 1, strings.ReplaceAll(rule, "NAME", "a")+","+strings.ReplaceAll(rule, "NAME", "b"))
	n := c.nodes[0]
	onlyA, onlyB := mete.Attrs{"header:a": "1"}, mete.Attrs{"header:b": "1"}
	take := func(attrs mete.Attrs, cost mete.Tokens) bool {
		t.Helper()
		d, err := n.Take(t.Context(), mete.Request{Attributes: attrs, Cost: cost})
		if err != nil {
			t.Fatal(err)
		}
		return d.Allowed
	}
	c.cut(down)
	r, err := n.Reserve(t.Context(), mete.Request{Attributes: mete.Attrs{"header:a": "1", "header:b": "1"}, Cost: 5})
	if err != nil || !r.Allowed || !r.Degraded {
		t.Fatalf("reserve: %+v, error %v; want a local decision", r, err)
	}
	keyA, keyB := r.Limits()[0].Key, r.Limits()[1].Key
	c.cut(up)
	if !take(onlyB, 1) { // which charges b to the store, and not a
		t.Fatal("b is denied")
	}
	c.cut(down)
	if err := r.Cancel(t.Context()); mete.Spent(err) != mete.NotSpent {
		t.Fatalf("cancel while the store is down: error %v, want one that spent nothing", err)
	}
	if !take(onlyA, 10) {
		t.Fatal("a is denied, want its 5 back")
	}
	if err := r.Cancel(t.Context()); mete.Spent(err) != mete.NotSpent {
		t.Fatalf("cancel again: error %v, want one that spent nothing", err)
	}
	if take(onlyA, 0.001) {
		t.Error("a gave more than its 10")
	}
	c.cut(up)
	if err := n.Recover(t.Context()); err != nil { // which charges the 10 of a
		t.Fatal(err)
	}
	if err := r.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	rules := n.Policy().Rules()
	if got := c.missing(keyA, rules[0].Limits[0].Bucket); got != 10*bucket.Token {
		t.Errorf("the store's bucket a misses %v, want 10", got)
	}
	if got := c.missing(keyB, rules[1].Limits[0].Bucket); got != bucket.Token {
		t.Errorf("the store's bucket b misses %v, want 1", got)
	}
}
