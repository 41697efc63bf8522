// SPDX-License-Identifier: Apache-2.0

package policytest_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metehq/mete/policytest"
)

// The examples of the documents that the language comes from, as tests.
var seeds = map[string]string{
	"reference.json": `[{"name": "one bucket for all: 200 at once, then 100 a second", "steps": [
		{"with": {"ip:address": "192.0.2.{n}"}, "times": 200, "expect": "allowed"},
		{"expect": {"denied": "default", "reason": "token_bucket_exceeded", "retry_after": "10ms", "remaining": 0}},
		{"after": "10ms", "times": 100, "every": "10ms", "expect": "allowed"},
		{"cost": 201, "expect": {"retry_after": "never"}}]}]`,
	"variable_cost.json": `[{"name": "the header says the cost", "steps": [
		{"with": {"header:x-request-weight": 5}, "expect": {"cost": 5, "remaining": 995}},
		{"with": {"header:x-request-weight": "heavy"}, "expect": {"cost": 1, "remaining": 994}},
		{"expect": {"cost": 1, "remaining": 993}},
		{"with": {"header:x-request-weight": 1000}, "expect": {"denied": "default", "retry_after": "70ms"}}]}]`,
	"global_rps.json": `[{"name": "each address gets its own 10, and 5 a second", "request": {"ip:address": "192.0.2.1"}, "steps": [
		{"times": 12, "expect": {"allowed": 10, "denied": "global-rps", "retry_after": "200ms"}},
		{"with": {"ip:address": "192.0.2.2"}, "times": 10, "expect": "allowed"},
		{"after": "1s", "times": 6, "expect": {"allowed": 5, "denied": "global-rps"}}]}]`,
	"tiers.json": `[
		{"name": "enterprise callers have no other limit", "request": {"header:x-api-key": "k", "jwt:plan": "enterprise"}, "steps": [
			{"times": 2001, "expect": {"allowed": 2000, "denied": "enterprise", "applies": ["enterprise"]}}]},
		{"name": "all others are free", "request": {"header:x-api-key": "k"}, "steps": [
			{"with": {"jwt:plan": "pro"}, "times": 15, "expect": {"allowed": true, "applies": ["free"]}},
			{"times": 15, "expect": {"allowed": 5, "denied": "free", "retry_after": "100ms"}}]}]`,
}

func TestSeeds(t *testing.T) {
	const dir = "../policy/testdata/seeds"
	files, err := filepath.Glob(dir + "/*.json")
	if err != nil || len(files) != len(seeds) {
		t.Fatalf("%s has %d files, %v, want %d", dir, len(files), err, len(seeds))
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			var policy map[string]any
			if err := json.Unmarshal([]byte(read(t, file)), &policy); err != nil {
				t.Fatal(err)
			}
			if policy["rules"] == nil { // a rule alone, which has no place for tests
				if policy["name"] == nil {
					policy["name"], policy["limit_keys"] = "default", []string{}
				}
				policy = map[string]any{"rules": []any{policy}}
			}
			policy["tests"] = json.RawMessage(seeds[filepath.Base(file)])
			text, err := json.Marshal(policy)
			if err != nil {
				t.Fatal(err)
			}
			m := compile(t, string(text))
			policytest.Check(t, m)
			report := run(t, m)
			for _, gap := range report.Gaps() {
				t.Error(gap)
			}
		})
	}
}
