// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/metehq/mete/policy"
)

// A single limit keeps the name from the file. Otherwise adding a second limit would rename its buckets, and
// these would begin full.
func TestLimits_TheOnlyOneKeepsItsName(t *testing.T) {
	const (
		day  = `{"name": "day", "algorithm": "fixed_window", "tokens": 100, "window": "1d"}`
		hour = `{"name": "hour", "algorithm": "fixed_window", "tokens": 10, "window": "1h"}`
		file = `{"rules": [{"name": "plan", "limit_keys": ["ip:address"], "limits": [%s]}], "overrides": [%s]}`
		over = `{"id": "o", "action": "limit", "rules": ["plan"], "match": {}, %s, "reason": "r", "author": "a", "expires_at": "2099-01-01T00:00:00Z"}`
	)
	key := func(text string) string {
		matches, _ := loadWhole(t, text).Match(nil, policy.Map{"ip:address": "192.0.2.1"}, 0, 0)
		return matches[0].Key + " " + matches[0].Limit.Bucket.Capacity().String()
	}
	for limits, want := range map[string]string{day: "plan/day:ip=192.0.2.1 100", day + ", " + hour: "plan/day:ip=192.0.2.1 100",
		`{"rps": 1, "burst": 5}`: "plan:ip=192.0.2.1 5"} {
		if got := key(fmt.Sprintf(file, limits, "")); got != want {
			t.Errorf("key and capacity of %s are %q, want %q", limits, got, want)
		}
	}
	for _, limit := range []string{`"algorithm_config": {"rps": 1, "burst": 7}`, `"limits": [{"rps": 1, "burst": 7}]`, `"limits": [{"name": "day", "rps": 1, "burst": 7}]`} {
		if got, want := key(fmt.Sprintf(file, day, fmt.Sprintf(over, limit))), "plan/day:ip=192.0.2.1 7"; got != want {
			t.Errorf("under an override of %s they are %q, want %q", limit, got, want)
		}
	}
	bad := fmt.Sprintf(file, day, fmt.Sprintf(over, `"limits": [{"name": "hour", "rps": 1, "burst": 7}]`))
	if _, err := policy.Load([]byte(bad), policy.Options{}); err == nil || !strings.Contains(err.Error(), `no limit "plan/hour"`) {
		t.Errorf("an override of another name: %v", err)
	}
}
