// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/metehq/mete/policy"
)

// repeat joins n texts, each made from its number.
func repeat(n int, format string) string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf(format, i))
	}
	return strings.Join(out, ",")
}

// Every bound is inclusive: the bound is valid, and one more is one error.
func TestBounds(t *testing.T) {
	const limit = `"algorithm_config": {"rps": 1, "burst": 1}`
	for _, tc := range []struct {
		name string
		most int
		file func(n int) string
	}{
		{"rules", policy.MaxRules, func(n int) string {
			return `{"rules": [` + repeat(n, `{"name": "r%d", "limit_keys": [], "match": {"path": "/%[1]d"}, `+limit+`}`) + `]}`
		}},
		{"rules of a bundle", policy.MaxRules, func(n int) string {
			return `{"policies": [{"id": "a", "spec": {"rules": [{"name": "first", "limit_keys": [], ` + limit + `}]}}, {"id": "b", "spec": {"rules": [` +
				repeat(n-1, `{"name": "r%d", "limit_keys": [], "match": {"path": "/%[1]d"}, `+limit+`}`) + `]}}]}`
		}},
		{"policies", policy.MaxPolicies, func(n int) string { // all but 60 in shadow would still be too many at once
			return `{"policies": [` + repeat(n, `{"id": "p%d", "spec": {"rules": [{"name": "r%[1]d", "limit_keys": [], "algorithm_config": {}}]}}`) + `]}`
		}},
		{"limit keys", policy.MaxLimitKeys, func(n int) string {
			return `{"name": "r", "limit_keys": [` + repeat(n, `"query:q%d"`) + `], ` + limit + `}`
		}},
		{"limits", policy.MaxLimits, func(n int) string {
			return `{"name": "r", "limit_keys": [], "limits": [` + repeat(n, `{"name": "l%d", "rps": 1, "burst": 1}`) + `]}`
		}},
		{"shards", policy.MaxShards, func(n int) string {
			return fmt.Sprintf(`{"name": "r", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 1000, "shards": %d}}`, n)
		}},
		{"shards of a request", 63, func(n int) string {
			return `{"name": "r", "limit_keys": [], "limits": [{"rps": 1, "burst": 1000, "shards": 31},` +
				fmt.Sprintf(`{"name": "b", "rps": 1, "burst": 1000, "shards": %d}]}`, n-31)
		}},
		{"match clauses", policy.MaxMatchClauses, func(n int) string {
			return `{"name": "r", "limit_keys": [], "match": {` + repeat(n, `"query:q%d": 1`) + `}, ` + limit + `}`
		}},
		{"match values", policy.MaxMatchValues, func(n int) string {
			return `{"name": "r", "limit_keys": [], "match": {"query:q": [` + repeat(n, `%d`) + `]}, ` + limit + `}`
		}},
		{"name", policy.MaxNameBytes, func(n int) string {
			return `{"name": "` + strings.Repeat("x", n) + `", "limit_keys": [], ` + limit + `}`
		}},
		{"attribute", policy.MaxAttributeBytes, func(n int) string {
			return `{"name": "r", "limit_keys": ["query:` + strings.Repeat("x", n-6) + `"], ` + limit + `}`
		}},
		{"file", policy.MaxFileBytes, func(n int) string {
			s := `{"name": "r", "limit_keys": [], ` + limit + `}`
			return s + strings.Repeat(" ", n-len(s))
		}},
	} {
		mistakes := func(n int) int {
			_, err := policy.Load([]byte(tc.file(n)), policy.Options{})
			var es policy.Errors
			errors.As(err, &es)
			return len(es)
		}
		if tc.name == "policies" { // each has errors of its own, and so is not too many limits
			if got := mistakes(tc.most + 1); got != 1 {
				t.Errorf("%s: %d mistakes above the bound, want 1", tc.name, got)
			}
			continue
		}
		if at, above := mistakes(tc.most), mistakes(tc.most+1); at != 0 || above != 1 {
			t.Errorf("%s: %d mistakes at the bound of %d and %d above it, want 0 and 1", tc.name, at, tc.most, above)
		}
	}
}

// The errors of a completely invalid file are readable.
func TestErrorsBounded(t *testing.T) {
	_, err := policy.Load([]byte(`{"name": "r", "limit_keys": [], `+repeat(50000, `"x%d": 1`)+`}`), policy.Options{})
	var es policy.Errors
	if !errors.As(err, &es) || len(es) != 1001 || !strings.Contains(es[1000].Reason, "more") {
		t.Errorf("%d mistakes, want 1000 and one that says how many more there are", len(es))
	}
}

// Characters that control a terminal are escaped.
func TestErrorVisible(t *testing.T) {
	_, err := policy.Load([]byte(`{"rules": [], "\u001b[31m\u0007": 1, "mode": "\u009b"}`), policy.Options{})
	if err == nil || strings.ContainsAny(err.Error(), "\x1b\x07\u009b") {
		t.Errorf("error %q has control characters", err)
	}
}
