// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/pgstore/rules"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policytest"
)

var options = policy.Options{HashKey: []byte("test")}

// load compiles a valid policy file.
func load(t testing.TB, data []byte) *policy.Matcher {
	t.Helper()
	m, err := policytest.Load(data, options)
	if err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	return m
}

// compile compiles valid rows.
func compile(t testing.TB, s *rules.Set) *policy.Matcher {
	t.Helper()
	m, err := s.Compile(options)
	if err != nil {
		t.Fatalf("rules %s: %v", rowsText(s), err)
	}
	return m
}

func rowsText(s *rules.Set) string {
	var b strings.Builder
	for _, r := range s.Rules {
		fmt.Fprintf(&b, "\n%d %q %s (%s) %s/%s plan %q %t %q priority %d policy %s fallback %t %s", r.ID, r.Name, r.KeyPattern, r.Scope, r.RatePerSecond,
			r.BurstCapacity, r.Plan, r.Active, r.Description, r.Priority, r.Policy, r.Fallback, strings.Join(strings.Fields(string(r.Spec)), " "))
	}
	for _, id := range slices.Sorted(maps.Keys(s.Policies)) {
		fmt.Fprintf(&b, "\npolicy %q %s", id, s.Policies[id])
	}
	return b.String()
}

// shape returns the rules of a policy as text, without the groups of rules that apply together.
func shape(m *policy.Matcher) string {
	var b strings.Builder
	for _, r := range m.Rules() {
		fmt.Fprintf(&b, "%q %q %v mode=%s on_store_error=%d deadline=%v headers=%v jitter=%v\n",
			r.Name, r.Description, r.LimitKeys, r.Mode, r.OnStoreError, r.Deadline, r.Headers, r.Jitter)
		for _, l := range r.Limits {
			fmt.Fprintf(&b, "\t%q %s %+v shards=%d leased=%t stages=%v\n", l.Name, l.Reason, l.Bucket, l.Shards, l.Leased, l.Stages)
		}
	}
	return b.String()
}

// sameDecisions compares the decisions of two policies for the same requests.
func sameDecisions(t testing.TB, what string, want, got *policy.Matcher, values map[string][]string) {
	t.Helper()
	if w, g := shape(want), shape(got); w != g {
		t.Fatalf("%s: the policy is\n%s\nwant\n%s", what, g, w)
	}
	attributes := want.Attributes()
	rng := rand.New(testseed.PCG(1, 2))
	for range 300 {
		request := policy.Map{}
		for _, a := range attributes {
			pool := slices.Concat(values[a.String()], []string{"", "x", "5", "/login", "free", "192.0.2.1", "10.1.2.3", "2001:db8::1", "GET"})
			if n := rng.IntN(len(pool) + 2); n < len(pool) {
				request[a.String()] = pool[n]
			}
		}
		wants, wantVerdict := want.Match(nil, request, 0, 0)
		gots, gotVerdict := got.Match(nil, request, 0, 0)
		if w, g := matchesText(wants, wantVerdict.Missing), matchesText(gots, gotVerdict.Missing); w != g {
			t.Fatalf("%s: a request with %v falls under\n%s\nwant\n%s", what, request, g, w)
		}
	}
}

func matchesText(matches []policy.Match, missing *policy.Rule) string {
	var b strings.Builder
	if missing != nil {
		fmt.Fprintf(&b, "missing %s\n", missing.Name)
	}
	for _, m := range matches {
		fmt.Fprintf(&b, "%s %s %v shadow=%t\n", m.Limit.Name, m.Key, m.Cost, m.Shadow)
	}
	return b.String()
}
