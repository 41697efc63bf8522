// SPDX-License-Identifier: Apache-2.0

package monitor_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/monitor"
	"github.com/metehq/mete/policy"
)

func TestCounts(t *testing.T) {
	m, err := policy.Load([]byte(`{"rules": [
		{"name": "all", "limit_keys": [], "limits": [{"name": "second", "algorithm_config": {"rate": "1/1d", "burst": 5}}, {"name": "day", "algorithm_config": {"rate": "1/1d", "burst": 5}}]},
		{"name": "watched", "mode": "shadow", "group": "watch", "limit_keys": [], "algorithm_config": {"rate": "1/1d", "burst": 2}}
	]}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	counts := monitor.NewCounts("memory")
	lim, err := mete.New(store, m, mete.Config{OnDecision: counts.OnDecision})
	if err != nil {
		t.Fatal(err)
	}
	for range 8 {
		if _, err := lim.Take(t.Context(), mete.Request{Cost: 1}); err != nil {
			t.Fatal(err)
		}
	}
	got := counts.Totals()
	slices.SortFunc(got.Rules, func(a, b monitor.RuleTotals) int { return strings.Compare(a.Rule, b.Rule) })
	want := []monitor.RuleTotals{{Rule: "all", Allowed: 5, Denied: 3, Near: 2}, {Rule: "watched", Shadow: 3}}
	if got.Allowed != 5 || got.Denied != 3 || got.Shadow != 3 || got.Degraded != 0 || !slices.Equal(got.Rules, want) {
		t.Errorf("got %+v, want 5 allowed, 3 denied, 3 in shadow and %+v", got, want)
	}
	mon, err := monitor.New(counts, lim.Policy)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(mon.Close)
	if s := mon.State(); s.Policy.Rules != 2 || !s.Ready || s.Store.Kind != "memory" {
		t.Errorf("the state is %+v", s)
	}
}
