// SPDX-License-Identifier: Apache-2.0

package policytest_test

import (
	"strings"
	"testing"

	"github.com/metehq/mete/policy"
)

// A bucket that holds nothing paces all requests: each reserves the next free instant.
func TestRun_CapacityZeroPaces(t *testing.T) {
	const file = `{"rules": [{"name": "mail", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 0, "max_reserved": 5}}],
		"tests": [{"name": "one a second", "steps": [
			{"max_wait": "1m", "expect": {"allowed": true, "wait": "1s"}},
			{"max_wait": "1m", "expect": {"allowed": true, "wait": "2s"}},
			{"max_wait": "1m", "expect": {"allowed": true, "wait": "3s"}},
			{"after": "500ms", "max_wait": "1m", "expect": {"allowed": true, "wait": "3500ms"}},
			{"max_wait": "1m", "expect": {"allowed": true, "wait": "4500ms"}},
			{"max_wait": "1m", "expect": "denied"},
			{"after": "10s", "max_wait": "1m", "cost": 5, "expect": {"allowed": true, "wait": "5s"}},
			{"after": "1h", "expect": {"denied": "mail", "reason": "token_bucket_exceeded"}},
			{"max_wait": "1m", "expect": {"allowed": true, "wait": "1s"}}]}]}`
	m, err := policy.Load([]byte(file), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	report := run(t, m)
	for _, f := range report.Results[0].Failures {
		t.Errorf("%v\n%s", f, strings.Join(f.Why, "\n"))
	}
}
