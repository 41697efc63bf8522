// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

// Enforced rules and active overrides read attributes until they expire.
func TestMatcher_Enforces(t *testing.T) {
	const rules = `{"rules": [
		{"name": "on", "limit_keys": ["header:on-key"], "match": {"header:on-match": "*"}, "algorithm_config": {"rps": 1, "burst": 1, "cost_source": "header:on-cost"}},
		{"name": "part", "mode": "1%%", "limit_keys": ["header:part"], "algorithm_config": {"rps": 1, "burst": 1}},
		{"name": "shadow", "mode": "shadow", "limit_keys": ["header:shadow"], "algorithm_config": {"rps": 1, "burst": 1}},
		{"name": "off", "mode": "off", "limit_keys": ["header:off"], "algorithm_config": {"rps": 1, "burst": 1}}], "overrides": [%s]}`
	const rest = `"reason": "r", "author": "a", "expires_at": "2030-01-01T00:00:00Z"}`
	at := func(year int) bucket.Instant { return bucket.At(time.Date(year, 6, 1, 0, 0, 0, 0, time.UTC)) }
	for _, tt := range []struct {
		override  string
		attribute string
		at        bucket.Instant
		want      bool
	}{
		{"", "header:on-key", 0, true},
		{"", "header:on-match", 0, true},
		{"", "header:on-cost", 0, true},
		{"", "header:part", 0, true},
		{"", "header:shadow", 0, false},
		{"", "header:off", 0, false},
		{"", "header:unread", 0, false},
		{`{"id": "o", "action": "block", "match": {"header:shadow": "x"}, ` + rest, "header:shadow", at(2029), true},
		{`{"id": "o", "action": "block", "match": {"header:shadow": "x"}, ` + rest, "header:shadow", at(2030), false},
		{`{"id": "o", "action": "allow", "rules": ["shadow"], "match": {"header:also": "x"}, ` + rest, "header:also", at(2029), false},
		{`{"id": "o", "action": "allow", "rules": ["on"], "match": {"header:also": "x"}, ` + rest, "header:also", at(2029), true},
		{`{"id": "o", "action": "block", "key": "shadow:shadow=x", ` + rest, "header:shadow", at(2029), true},
		{`{"id": "o", "action": "shadow", ` + rest, "header:on-key", at(2029), false},
		{`{"id": "o", "action": "shadow", ` + rest, "header:on-key", at(2030), true},
		{`{"id": "o", "action": "break_glass", ` + rest, "header:on-key", at(2029), false},
	} {
		m, err := policy.Load(fmt.Appendf(nil, rules, tt.override), policy.Options{Now: time.Date(2028, 1, 1, 0, 0, 0, 0, time.UTC)})
		if err != nil {
			t.Errorf("%s: %v", tt.override, err)
			continue
		}
		a, err := policy.ParseAttribute(tt.attribute)
		if err != nil {
			t.Fatal(err)
		}
		for how, m := range map[string]*policy.Matcher{"loaded": m, "with another hash key": m.WithHashKey([]byte("0123456789abcdef0123456789abcdef"))} {
			if got := m.Enforces(a, tt.at); got != tt.want {
				t.Errorf("%s, with override %q: Enforces(%s, %v) = %v, want %v", how, tt.override, tt.attribute, tt.at, got, tt.want)
			}
		}
	}
}
