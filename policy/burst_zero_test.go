// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"strings"
	"testing"

	"github.com/metehq/mete/policy"
)

// A burst of 0 is for limits that allow reservations, and nothing else.
func TestBurstZero(t *testing.T) {
	for config, want := range map[string]string{
		`"rps": 1, "burst": 0, "max_reserved": 5`:                                                          "",
		`"rps": 1, "burst": "0", "max_reserved": 5`:                                                        "",
		`"rps": 1, "burst": 0, "max_reserved": 5, "fixed_cost": 5`:                                         "",
		`"rps": 1, "burst": 0`:                                                                             "leaky_bucket",
		`"rps": 1, "burst": 0, "max_reserved": 0`:                                                          "leaky_bucket",
		`"rps": 1, "burst": -1, "max_reserved": 5`:                                                         "burst must be above 0",
		`"rps": 1, "burst": 0, "max_reserved": 5, "fixed_cost": 6`:                                         "above the max_reserved of 5",
		`"rps": 1, "burst": 0, "max_reserved": 5, "shards": 2`:                                             "cannot be combined with shards",
		`"rps": 1, "burst": 0, "max_reserved": 5, "leased": true`:                                          "cannot be combined with leased",
		`"rps": 1, "burst": 0, "max_reserved": 5, "staged_actions": [{"threshold": 80, "action": "warn"}]`: "cannot be combined with staged_actions",
		`"rate": "1/1s", "refill": "interval", "burst": 0, "max_reserved": 5`:                              "must be above 0",
	} {
		m, err := policy.Load([]byte(`{"rules": [{"name": "r", "limit_keys": [], "algorithm_config": {`+config+`}}]}`), policy.Options{})
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", config, err)
		case want == "" && m.Rules()[0].Limits[0].Bucket.Capacity() != 0:
			t.Errorf("%s: capacity %v", config, m.Rules()[0].Limits[0].Bucket.Capacity())
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: error %v, want one with %q", config, err, want)
		}
	}
}
