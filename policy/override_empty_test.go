// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/metehq/mete/policy"
)

// Under on_missing: empty, requests without an attribute and with an empty one share a
// bucket. An override about one of both would give the bucket two limits.
func TestOverride_TellsAbsentFromEmpty(t *testing.T) {
	const file = `{"rules": [{"name": "r", "limit_keys": ["header:tenant", "ip:address"], "on_missing": %q, "algorithm_config": {"rps": 1, "burst": 1000}}],
		"overrides": [{"id": "o", "action": "limit", "rules": ["r"], "match": %s, "algorithm_config": {"rps": 10, "burst": 10},
		"reason": "x", "author": "y", "expires_at": "2099-01-01T00:00:00Z"}]}`
	for _, tc := range []struct {
		match string
		ok    bool
	}{
		{`{"header:tenant": "*"}`, false}, {`{"header:tenant": {"not": "*"}}`, false}, {`{"header:tenant": ""}`, false}, {`{"header:tenant": {"not": ["", "a"]}}`, false},
		{`{"header:tenant": ["a", "b*"]}`, true}, {`{"header:tenant": {"not": "a"}}`, true}, {`{}`, true},
		{`{"ip:address": "*"}`, true}, {`{"ip:address": {"not": "*"}}`, true}, // no address is empty
	} {
		m, err := policy.Load(fmt.Appendf(nil, file, "empty", tc.match), policy.Options{})
		switch {
		case (err == nil) != tc.ok:
			t.Errorf("%s: error %v, want %t", tc.match, err, !tc.ok)
		case err != nil && !strings.Contains(err.Error(), "list its values"):
			t.Errorf("%s: error %v has no hint", tc.match, err)
		case err == nil:
			one, _ := m.Match(nil, policy.Map{}, 0, 0)
			two, _ := m.Match(nil, policy.Map{"header:tenant": ""}, 0, 0)
			if one[0].Key != two[0].Key || one[0].Limit.Bucket != two[0].Limit.Bucket {
				t.Errorf("%s: bucket %q has the limits %v and %v", tc.match, one[0].Key, one[0].Limit.Bucket, two[0].Limit.Bucket)
			}
		}
		for _, other := range []string{"skip", "deny"} {
			if _, err := policy.Load(fmt.Appendf(nil, file, other, tc.match), policy.Options{}); err != nil {
				t.Errorf("%s with on_missing: %s: %v", tc.match, other, err)
			}
		}
	}
}
