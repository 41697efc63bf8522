// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"math/rand/v2"
	"testing"

	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/pgstore/rules"
)

// A crowd finds whom a rule meets exactly where comparing it with everybody does.
func TestCrowd_AgreesWithEachOther(t *testing.T) {
	rng := rand.New(testseed.PCG(7, 8))
	values := []string{"a", "b", "ab", "abc", "b/c", "c", "d", "e", "f", "a*", "ab*", "b/*", "*", "c*", ""}
	all, some := 0, 0
	for range 20_000 {
		clauses := make([]map[string][]string, 2+rng.IntN(4))
		for i := range clauses {
			clauses[i] = map[string][]string{}
			for _, attribute := range []string{"x", "y"} {
				if rng.IntN(4) == 0 {
					continue
				}
				for range 1 + rng.IntN(2) {
					clauses[i][attribute] = append(clauses[i][attribute], values[rng.IntN(len(values))])
				}
			}
		}
		want, got := rules.AllApart(clauses)
		if got != want {
			t.Fatalf("%v: apart %t, want %t", clauses, got, want)
		}
		if all++; want {
			some++
		}
	}
	if some < all/50 {
		t.Errorf("only %d of %d are apart", some, all)
	}
}

// How long a change of one of ten thousand rows takes to be a policy again, with the
// reading of all of them.
func BenchmarkLoad_TenThousandRows(b *testing.B) {
	d := newDatabase(b)
	d.must(`INSERT INTO {schema}.rate_limit_rule (name, key_pattern, scope, rate_per_second, burst_capacity, plan)
		SELECT 'r' || i, 'endpoint:/api/' || i / 10 || '/*:{ip}', 'endpoint', 1, 5, 'plan' || i % 10 FROM generate_series(1, 10000) i`)
	b.ReportAllocs()
	for b.Loop() {
		d.load()
	}
}
