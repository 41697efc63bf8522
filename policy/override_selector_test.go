// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"

	"github.com/metehq/mete/policy"
)

// Overrides in a file apply to all requests, regardless of the selector of the policy before them.
func TestOverrides_AreNotBoundBySelectors(t *testing.T) {
	const (
		api   = `{"selector": {"hosts": "api.example.com", "pathPrefix": "/v1"}, "rules": [{"name": "api", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 5}}]`
		admin = `{"selector": {"hosts": "admin.example.com"}, "rules": [{"name": "admin", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 5}}]`
		until = `"reason": "r", "author": "a", "expires_at": "2099-01-01T00:00:00Z"`
	)
	shapes := map[string]string{
		"policy": api,
		"bundle": `{"policies": [{"id": "a", "spec": ` + api + `}}, {"id": "b", "spec": ` + admin + `}}]`,
	}
	exceptions := map[string]string{
		"a kill switch": `"kill_switches": [{"scope_key": "header:x-customer", "scope_value": "bolt", "route": "/v1/export", ` + until + `}]`,
		"an override":   `"overrides": [{"id": "o", "action": "block", "match": {"header:x-customer": "bolt", "path": "/v1/export"}, ` + until + `}]`,
		"break_glass":   `"break_glass": {` + until + `}`,
	}
	for shape, text := range shapes {
		for name, exception := range exceptions {
			m, err := policy.Load([]byte(text+", "+exception+"}"), policy.Options{HashKey: []byte("k")})
			if err != nil {
				t.Errorf("%s in a %s: %v", name, shape, err)
				continue
			}
			for _, host := range []string{"api.example.com", "admin.example.com", "www.example.com"} {
				why := m.Explain(policy.Map{"host": host, "path": "/v1/export", "header:x-customer": "bolt"}, 0, 0)
				if why.Block == nil && why.Allow == nil {
					t.Errorf("%s in a %s is not in force for %s", name, shape, host)
				}
			}
		}
	}
}
