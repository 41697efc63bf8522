// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"strings"
	"testing"
)

// Attributes that only the denial log uses are not reported as unknown.
func TestUnknownAttributes_TheLogReadsAddresses(t *testing.T) {
	t.Parallel()
	const body = `{"attributes":{"ip:address":"192.0.2.1","header:x_api_key":"k1"}}`
	for logged, want := range map[bool]string{
		true:  `"unknown_attributes":["header:x_api_key"]`,
		false: `"unknown_attributes":["ip:address","header:x_api_key"]`,
	} {
		c := testConfig()
		c.Policy = policyFile(t, `{"name": "keys", "limit_keys": ["header:x-api-key"], "algorithm_config": {"rps": 1, "burst": 1}}`)
		if !logged {
			c.DenialLog.Interval = 0
		}
		s := start(t, c)
		if status, answer := post(t, s.main+"/v1/take", strings.NewReader(body)); status != 200 || !strings.Contains(answer, want) {
			t.Errorf("with a log of denials (%v): %d %s, want %s", logged, status, answer, want)
		}
	}
}
