// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"strings"
	"testing"

	"github.com/metehq/mete/policy"
)

func loadKeyedBy(t *testing.T, attribute string, key []byte) *policy.Matcher {
	t.Helper()
	text := strings.ReplaceAll(`{"rules": [{"name": "r", "limit_keys": ["KEY"], "algorithm_config": {"rate": "1/1m", "burst": 3}}]}`, "KEY", attribute)
	m, err := policy.Load([]byte(text), policy.Options{HashKey: key})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestHashKeyID(t *testing.T) {
	a, b := []byte("a"), []byte("b")
	hashed := loadKeyedBy(t, "header:x-api-key", a)
	id := hashed.HashKeyID()
	for name, tt := range map[string]struct{ got, want string }{
		"the same key, another policy": {loadKeyedBy(t, "customer", a).HashKeyID(), id},
		"the key alone":                {policy.HashKeyID(a), id},
		"a policy with another key":    {hashed.WithHashKey(b).HashKeyID(), policy.HashKeyID(b)},
		"a policy that hashes nothing": {loadKeyedBy(t, "ip:address", a).HashKeyID(), ""},
		"a random key":                 {loadKeyedBy(t, "header:x-api-key", nil).HashKeyID(), ""},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: ID %q, want %q", name, tt.got, tt.want)
		}
	}
	if len(id) != 22 || id == policy.HashKeyID(b) {
		t.Errorf("ID %q, the one of another key %q: want 22 characters, and different ones", id, policy.HashKeyID(b))
	}
}
