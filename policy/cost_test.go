// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"math/big"
	"strings"
	"testing"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

// costs returns a policy with costs in a header: 7 by default, and from 0.5 to 100.
func costs(t testing.TB) *policy.Matcher {
	t.Helper()
	return load(t, `{"name": "r", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 1000, "cost_source": "header:X-Cost",
		"default_cost": 7, "min_cost": 0.5, "max_cost": 100}}`)
}

func cost(t testing.TB, m *policy.Matcher, value string) bucket.Tokens {
	t.Helper()
	matches, _ := m.Match(nil, policy.Map{"header:x-cost": value}, 0, 0)
	if len(matches) != 1 {
		t.Fatalf("cost %q: %d matches, want 1", value, len(matches))
	}
	return matches[0].Cost
}

func TestCost(t *testing.T) {
	m := costs(t)
	for value, want := range map[string]bucket.Tokens{
		"5": 5000, "0.5": 500, "1e1": 10000, "1E+1": 10000, "50e-1": 5000, "007": 7000, "5.": 7000, " 5\t": 5000,
		"0.1":                           500,    // below min_cost
		"0.000001":                      500,    // rounded up to 0.001, then min_cost
		"101":                           100000, // above max_cost
		"9007199254740.991":             100000,
		"1.0001":                        1001, // rounded up
		"1.00000000000000000000000001":  1001,
		"1.000000000000000000000000000": 1000,
		// Not costs: the default.
		"": 7000, "0": 7000, "0.0": 7000, "-5": 7000, "+5": 7000, "NaN": 7000, "nan": 7000, "inf": 7000, "Infinity": 7000,
		"0x10": 7000, "1e999": 7000, "1e": 7000, "1e+": 7000, "e5": 7000, "1e5x": 7000, "1e1.5": 7000, ".5": 7000, ".": 7000, "1.2.3": 7000, "1,5": 7000,
		"5 5": 7000, "five": 7000, "1_000": 7000, "５": 7000, "9007199254740.992": 7000, "1e13": 7000,
		strings.Repeat("9", 400): 7000, "1e-99999999999999999999": 500,
	} {
		if got := cost(t, m, value); got != want {
			t.Errorf("cost %q = %v, want %v", value, got, want)
		}
	}
	for name, m := range map[string]*policy.Matcher{
		"query:c": load(t, `{"name": "r", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 9, "cost_source": "query:c"}}`),
		"jwt:c":   load(t, `{"name": "r", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 9, "cost_source": "attribute:jwt:c"}}`),
		"weight":  load(t, `{"name": "r", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 9, "cost_source": "attribute:weight"}}`),
	} {
		for _, value := range []string{"3", "x"} {
			want := map[string]bucket.Tokens{"3": 3000, "x": 1000}[value]
			if matches, _ := m.Match(nil, policy.Map{name: value}, 0, 0); matches[0].Cost != want {
				t.Errorf("%s=%s: cost %v, want %v", name, value, matches[0].Cost, want)
			}
		}
		if matches, _ := m.Match(nil, policy.Map{name: "3"}, 42, 0); matches[0].Cost != 42 {
			t.Errorf("cost given by the caller: %v, want 0.042", matches[0].Cost)
		}
	}
}

// FuzzCost compares with exact fractions: whatever they read as a plain number
// is rounded up, all else costs the default.
func FuzzCost(f *testing.F) {
	for _, s := range []string{"5", "0.5", "1e3", "1e-3", "NaN", "-1", "1.0001", "1e999", "123456789012345678901e-20", ""} {
		f.Add(s)
	}
	m := load(f, `{"name": "r", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 1000, "cost_source": "header:X-Cost", "default_cost": 7}}`)
	f.Fuzz(func(t *testing.T, s string) {
		got, want := cost(t, m, s), bucket.Tokens(7000)
		trimmed := strings.Trim(s, " \t")
		if _, exponent, _ := strings.Cut(strings.ToLower(trimmed), "e"); len(trimmed) <= 64 && len(exponent) <= 4 &&
			strings.Trim(trimmed, "0123456789.eE+-") == "" && trimmed != "" && trimmed[0] >= '0' && trimmed[0] <= '9' &&
			!strings.HasSuffix(trimmed, ".") && !strings.Contains(strings.ToLower(trimmed), ".e") {
			if r, ok := new(big.Rat).SetString(trimmed); ok && r.Sign() > 0 {
				r.Mul(r, big.NewRat(1000, 1))
				ceil := new(big.Int).Quo(new(big.Int).Sub(new(big.Int).Add(r.Num(), r.Denom()), big.NewInt(1)), r.Denom())
				if ceil.Cmp(big.NewInt(int64(bucket.MaxTokens))) <= 0 {
					want = bucket.Tokens(ceil.Int64())
				}
			}
		} else if len(exponent) > 4 {
			return
		}
		if got != want {
			t.Errorf("cost %q = %v, want %v", s, got, want)
		}
	})
}
