// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"strings"
	"testing"
)

// A server counts the requests that a rule skips for lack of its key, and logs them once.
func TestServer_SkippedRules(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.Policy = policyFile(t, `{"name": "per-key", "limit_keys": ["header:x-api-key"], "algorithm_config": {"rate": "1/1h", "burst": 5}}`)
	s := start(t, c)
	for range 200 {
		if status, body := post(t, s.main+"/v1/take", strings.NewReader(`{"attributes":{"ip:address":"192.0.2.77"}}`)); status != 200 {
			t.Fatalf("got %d: %s", status, body)
		}
	}
	s.hasMetrics(`mete_rule_skipped_total{rule="per-key"} 200`)
	// A minute may pass while this runs.
	if n := s.log.Count(`msg="rule skipped, requests lack an attribute of limit_keys" rule=per-key limit_keys=header:x-api-key`); n < 1 || n > 5 {
		t.Errorf("got %d records of 200 requests, want 1 per minute:\n%s", n, s.log)
	}
}
