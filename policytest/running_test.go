// SPDX-License-Identifier: Apache-2.0

package policytest_test

import (
	"strings"
	"testing"

	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policytest"
)

const jobs = `{"rules": [{"name": "jobs", "limit_keys": ["header:x-user"], "limits": [{"algorithm": "concurrency", "max": 2, "lease": "30s"},
	{"rate": "100/1d", "charge_on": {"status": [500]}}]}], "tests": `

// Requests that run hold their slots, also for longer than a lease, and are charged at their end.
func TestRun_Runs(t *testing.T) {
	m, err := policy.Load([]byte(jobs+`[{"name": "two at a time", "request": {"header:x-user": "ann"}, "steps": [
		{"times": 2, "runs": "10m", "status": 200, "expect": "allowed"},
		{"runs": "10m", "status": 200, "expect": {"denied": "jobs/1", "reason": "concurrency_exceeded", "retry_after": "30s"}},
		{"after": "9m59s", "expect": "denied"},
		{"after": "1s", "times": 5, "status": 500, "expect": {"allowed": true, "remaining": {"jobs/1": 1, "jobs/2": 94}}},
		{"runs": "1s", "status": 200, "expect": "allowed"},
		{"runs": "1s", "status": 200, "expect": {"allowed": true, "remaining": {"jobs/1": 0, "jobs/2": 92}}},
		{"after": "1s", "status": 200, "expect": {"allowed": true, "remaining": {"jobs/1": 1, "jobs/2": 93}}}]}]}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	report := run(t, m)
	for _, f := range report.Results[0].Failures {
		t.Errorf("%v\n%s", f, strings.Join(f.Why, "\n"))
	}
}

func TestRead_Runs(t *testing.T) {
	for _, runs := range []string{`"61m"`, `-1`, `"soon"`} {
		m, err := policy.Load([]byte(jobs+`[{"name": "a", "request": {"header:x-user": "ann"}, "runs": `+runs+`, "expect": "allowed"}]}`), policy.Options{})
		if err != nil {
			continue // by the schema
		}
		if _, _, err := policytest.Read(m); err == nil || !strings.Contains(err.Error(), "/tests/0/runs: runs must be") {
			t.Errorf("runs %s: %v", runs, err)
		}
	}
}
