// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"strings"
	"testing"

	"github.com/metehq/mete/policy"
)

// A field of a bundle in a policy alone is reported with the form of a bundle.
func TestLoad_BundleFieldInAPolicy(t *testing.T) {
	for _, name := range []string{"bundle_version", "issued_at", "expires_at"} {
		_, err := policy.Load([]byte(`{"`+name+`": 1, "rules": [{"name": "r", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 5}}]}`), policy.Options{})
		if err == nil || !strings.Contains(err.Error(), `unknown field "`+name+`" in a policy; only a bundle has it: {"bundle_version": 1, "policies": [`) {
			t.Errorf("%s: %v, want the form of a bundle", name, err)
		}
	}
}
