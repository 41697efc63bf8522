// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/metehq/mete/policy"
)

// hotPaths returns policies and requests as a server sees them, with the number of new keys. Each new key costs
// one allocation.
var hotPaths = []struct {
	name  string
	rules []string
	attrs policy.Map
	keys  int
}{
	{"one_for_all", []string{`{"name": "r", "limit_keys": [], @}`}, policy.Map{}, 0},
	{"ipv4", []string{`{"name": "r", "limit_keys": ["ip:address"], @}`}, policy.Map{"ip:address": "192.0.2.1"}, 1},
	{"ipv6", []string{`{"name": "r", "limit_keys": ["ip:address"], @}`}, policy.Map{"ip:address": "2001:db8:1:2:3::4"}, 1},
	{"claim", []string{`{"name": "r", "limit_keys": ["jwt:sub"], @}`}, policy.Map{"jwt:sub": "user-1234"}, 1},
	{"secret", []string{`{"name": "r", "limit_keys": ["header:x-api-key"], @}`}, policy.Map{"header:x-api-key": "0123456789abcdef0123456789abcdef"}, 1},
	{"long", []string{`{"name": "r", "limit_keys": ["path"], @}`}, policy.Map{"path": "/" + strings.Repeat("x", 2000)}, 1},
	{"cost", []string{`{"name": "r", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 9, "cost_source": "query:c"}}`}, policy.Map{"query:c": "2.5"}, 0},
	{"tiers_and_stack", []string{
		`{"name": "enterprise", "limit_keys": ["jwt:sub"], "match": {"jwt:plan": "enterprise"}, @}`,
		`{"name": "free", "limit_keys": ["jwt:sub"], @}`,
		`{"name": "search", "limit_keys": ["ip:address", "path"], "match": {"path": "/search*", "method": ["GET", "HEAD"]}, @}`,
		`{"name": "all", "limit_keys": [], @}`,
	}, policy.Map{"jwt:sub": "u", "jwt:plan": "free", "ip:address": "192.0.2.1", "path": "/search", "method": "GET"}, 2},
}

func TestMatchAllocates(t *testing.T) {
	for _, tc := range hotPaths {
		m, dst := load(t, tc.rules...), make([]policy.Match, 0, 8)
		var attrs policy.Attributes = tc.attrs
		got := testing.AllocsPerRun(200, func() { dst, _ = m.Match(dst[:0], attrs, 0, 0) })
		// Under the race detector a sync.Pool drops what it is given at random.
		if got > float64(tc.keys) && !raceEnabled {
			t.Errorf("%s: %v allocations, want the %d keys only", tc.name, got, tc.keys)
		}
	}
}

func BenchmarkMatch(b *testing.B) {
	for _, tc := range hotPaths {
		b.Run(tc.name, func(b *testing.B) {
			m, dst := load(b, tc.rules...), make([]policy.Match, 0, 8)
			var attrs policy.Attributes = tc.attrs
			b.ReportAllocs()
			for b.Loop() {
				dst, _ = m.Match(dst[:0], attrs, 0, 0)
			}
		})
	}
}

// 500 plans, and a caller who has the last of them.
func BenchmarkMatchManyTiers(b *testing.B) {
	var rules []string
	for i := range 500 {
		rules = append(rules, fmt.Sprintf(`{"name": "r%d", "limit_keys": ["jwt:sub"], "match": {"jwt:plan": "plan-%d"}, @}`, i, i))
	}
	m, dst := load(b, rules...), make([]policy.Match, 0, 8)
	var attrs policy.Attributes = policy.Map{"jwt:plan": "plan-499", "jwt:sub": "u"}
	b.ReportAllocs()
	for b.Loop() {
		dst, _ = m.Match(dst[:0], attrs, 0, 0)
	}
}

func BenchmarkLoad(b *testing.B) {
	var rules []string
	for i := range 500 {
		rules = append(rules, fmt.Sprintf(`{"name": "r%d", "limit_keys": ["jwt:sub"], "match": {"jwt:plan": "plan-%d"}, @}`, i, i))
	}
	b.ReportAllocs()
	for b.Loop() {
		load(b, rules...)
	}
}
