// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
)

// inMemoryBy returns a limiter over a store in memory, and a request with two attributes.
func inMemoryBy(t *testing.T, policy string) (*mete.Limiter, mete.Request) {
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := mete.New(store, load(t, policy), mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return l, mete.Request{Attributes: mete.Attrs{"header:x-user": "alice", "ip:address": "192.0.2.1"}}
}

const (
	oneRule  = `{"name": "user", "limit_keys": ["header:x-user"], "algorithm_config": {"rps": 1, "burst": 1000}}`
	twoRules = `{"rules": [` + oneRule + `, {"name": "address", "group": "a", "limit_keys": ["ip:address"], "algorithm_config": {"rps": 1, "burst": 5}}]}`
)

// A take under one rule allocates nothing for a known key. A take under several rules allocates the list of
// their limits.
func TestTake_Allocations(t *testing.T) {
	if raceEnabled {
		return // pools lose what they hold on purpose then
	}
	for _, tt := range []struct {
		what, policy string
		most         float64
	}{
		{"one rule", oneRule, 0},
		{"two rules, in the end denied", twoRules, 1},
	} {
		l, req := inMemoryBy(t, tt.policy)
		take := func() {
			if _, err := l.Take(t.Context(), req); err != nil {
				t.Fatal(err)
			}
		}
		if got := testing.AllocsPerRun(1000, take); got > tt.most {
			t.Errorf("%s: %v allocations, want at most %v", tt.what, got, tt.most)
		}
	}
}

// A retained or copied decision does not change after later takes.
func TestDecision_IsAValue(t *testing.T) {
	for _, policy := range []string{oneRule, twoRules} {
		l, req := inMemoryBy(t, policy)
		kept, err := l.Take(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		first := append([]mete.Status(nil), kept.Limits()...)
		passed := kept
		for _, user := range []string{"alice", "bob", "carol"} {
			req.Attributes = mete.Attrs{"header:x-user": user, "ip:address": "192.0.2.2"}
			if _, err := l.Take(t.Context(), req); err != nil {
				t.Fatal(err)
			}
		}
		for i, want := range first {
			if kept.Limits()[i] != want || passed.Limits()[i] != want {
				t.Errorf("limit %d: got %+v and copied %+v, want %+v", i, kept.Limits()[i], passed.Limits()[i], want)
			}
		}
	}
}

// WithLimits copies the limits and does not change its receiver.
func TestDecision_WithLimits(t *testing.T) {
	for n := range 4 {
		statuses := make([]mete.Status, n)
		for i := range statuses {
			statuses[i].Cost = bucket.Tokens(i + 1)
		}
		before := mete.Decision{Allowed: true}
		d := before.WithLimits(statuses...)
		clear(statuses)
		if got := d.Limits(); len(got) != n || n > 0 && got[n-1].Cost != bucket.Tokens(n) || len(before.Limits()) != 0 || !d.Allowed {
			t.Errorf("%d limits: got %+v, before %+v", n, got, before.Limits())
		}
	}
}
