// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"errors"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

const resetRules = `{"name": "free", "limit_keys": ["header:x-api-key"], "on_store_error": "local", "algorithm_config": {"rate": "1/1h", "burst": 4}},
	{"name": "two", "group": "two", "match": {"path": "/two"}, "limit_keys": ["header:x-api-key"], "on_store_error": "local", "limits": [
		{"name": "hour", "algorithm_config": {"rate": "1/1h", "burst": 100}},
		{"name": "day", "algorithm_config": {"rate": "1/1d", "burst": 200}}]}`

// askAs takes one token for a client, and reports whether it was allowed.
func (n *node) askAs(key string) bool {
	n.Helper()
	d, err := n.Take(n.Context(), mete.Request{Attributes: mete.Attrs{"header:x-api-key": key}})
	if err != nil {
		n.Fatal(err)
	}
	return d.Allowed
}

// exhaust takes tokens of a client until a denial.
func (n *node) exhaust(key string) {
	n.Helper()
	for range 10 {
		if !n.askAs(key) {
			return
		}
	}
	n.Fatalf("%s is not denied", key)
}

func (n *node) resetRule(rule string) (removed int64) {
	n.Helper()
	for from := ""; ; {
		more, next, err := n.ResetRule(n.Context(), rule, from)
		if err != nil {
			n.Fatal(err)
		}
		if removed += more; next == "" {
			return removed
		}
		from = next
	}
}

// A node with a remembered denial calls the store again after DropRule.
func TestResetRule_RememberedDenials(t *testing.T) {
	c := startDenying(t, 2, resetRules, time.Hour)
	a, b := c.nodes[0], c.nodes[1]
	a.exhaust("k")
	b.exhaust("k")
	a.exhaust("other")
	if removed := a.resetRule("free"); removed != 2 {
		t.Errorf("%d buckets were removed, want 2", removed)
	}
	if !a.askAs("k") || !a.askAs("other") {
		t.Error("denied after the reset by the same node")
	}
	if b.askAs("k") {
		t.Fatal("the other node does not deny from memory: the test shows nothing")
	}
	if err := b.DropRule(t.Context(), "two"); err != nil || b.askAs("k") {
		t.Errorf("another rule was forgotten: allowed, %v", err)
	}
	if err := b.DropRule(t.Context(), "free"); err != nil || !b.askAs("k") {
		t.Errorf("denied after the other node has forgotten the rule, %v", err)
	}
}

// Costs of an outage are dropped: they neither deny locally nor are charged later.
func TestResetRule_Outage(t *testing.T) {
	c := start(t, 2, resetRules)
	a, b := c.nodes[0], c.nodes[1]
	b.exhaust("seen") // with the store: the local bucket would begin empty
	b.line.cut(down)
	b.exhaust("local")
	if removed := a.resetRule("free"); removed != 1 {
		t.Errorf("%d buckets were removed, want 1", removed)
	}
	if b.askAs("local") || b.askAs("seen") {
		t.Fatal("the other node admits without a reset: the test shows nothing")
	}
	if err := b.DropRule(t.Context(), "free"); err != nil {
		t.Fatal(err)
	}
	if !b.askAs("local") || !b.askAs("seen") {
		t.Error("denied by local buckets after the rule was forgotten")
	}
	if err := b.DropRule(t.Context(), "free"); err != nil {
		t.Fatal(err)
	}
	b.line.cut(up)
	if err := b.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := b.Stats(); s.Unsettled != 0 || s.Charged != 0 {
		t.Errorf("%+v: costs from before the reset are charged", s)
	}
}

// A rule with several limits is reset in all of them, and an unknown rule is an error.
func TestResetRule_Limits(t *testing.T) {
	c := start(t, 1, resetRules)
	n := c.nodes[0]
	req := mete.Request{Attributes: mete.Attrs{"header:x-api-key": "k", "path": "/two"}}
	if _, err := n.Take(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	if removed := n.resetRule("two"); removed != 2 {
		t.Errorf("%d buckets were removed, want both limits'", removed)
	}
	_, _, err := n.ResetRule(t.Context(), "freee", "")
	var unknown *policy.RuleError
	if !errors.As(err, &unknown) || unknown.Near != "free" {
		t.Errorf("an unknown rule: %v, want a RuleError that knows a near name", err)
	}
	if _, _, err := n.ResetRule(t.Context(), "free", "nowhere"); !errors.Is(err, store.ErrFrom) {
		t.Errorf("an unknown place: %v, want %v", err, store.ErrFrom)
	}
	plain, err := mete.New(unclearing{c.store}, n.Policy(), mete.Config{Local: c.store})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := plain.ResetRule(t.Context(), "free", ""); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a store that cannot: %v, want ErrUnsupported", err)
	}
}

// An unclearing store has only the required methods.
type unclearing struct{ mete.Store }
