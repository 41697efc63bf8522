// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"strings"
	"testing"

	"github.com/metehq/mete/policy"
)

// The example request of an error is logged, so it must not contain values that may be credentials.
func TestUnreachable_ShowsNoSecrets(t *testing.T) {
	const text = `{"rules": [
		{"name": "a", "limit_keys": [], "match": {"header:x-api-key": "hunter2", "jwt:plan": "pro"}, "algorithm_config": {"rps": 1, "burst": 1}},
		{"name": "b", "limit_keys": [], "match": {"header:x-api-key": "hunter2", "jwt:plan": "pro"}, "algorithm_config": {"rps": 1, "burst": 1}}]}`
	_, err := policy.Load([]byte(text), policy.Options{})
	if err == nil || !strings.Contains(err.Error(), "header:x-api-key=…") || !strings.Contains(err.Error(), "jwt:plan=pro") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v, want an example without the key", err)
	}
}
