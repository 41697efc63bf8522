// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"testing"

	"github.com/metehq/mete/pgstore/rules"
	"github.com/metehq/mete/policy"
)

// A rule with the bucket of an earlier rule keeps its own costs, outcomes and penalty in a row.
func TestImport_SharedBucket(t *testing.T) {
	for _, second := range []string{`"fixed_cost": 5`, `"charge_on": {"status": [401]}`, `"penalty": "10m"`, `"cost_source": "header:x-cost", "max_cost": 9, "charge_on": {"status": ["5xx"]}`, `"on_full": "closed"`} {
		var s rules.Set
		text := `{"rules": [{"name": "a", "bucket": "b", "limit_keys": ["ip:address"], "match": {"method": "POST"}, "rate": "10/1s", "penalty": "10m", "on_full": "closed"},
			{"name": "c", "bucket": "b", ` + second + `}]}`
		want, err := policy.Load([]byte(text), policy.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Import([]byte(text), true); err != nil {
			t.Errorf("%s: import: %v", second, err)
			continue
		}
		got, err := s.Compile(policy.Options{})
		if err != nil {
			t.Errorf("%s: compile: %v\n%s", second, err, s.Rules[1].Spec)
			continue
		}
		a, b := &want.Rules()[1].Limits[0], &got.Rules()[1].Limits[0]
		if a.Bucket != b.Bucket || a.AwaitsResponse() != b.AwaitsResponse() || !a.Penalty.Equal(b.Penalty) || a.Costs() != b.Costs() || want.Rules()[1].OnFull != got.Rules()[1].OnFull {
			t.Errorf("%s: limit %+v, want %+v", second, b, a)
		}
	}
}
