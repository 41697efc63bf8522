// SPDX-License-Identifier: Apache-2.0

package openapi_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/metehq/mete/proof/meted"
)

// rules give every key three tokens while the test lasts, and have something of all
// that an answer can show.
const rules = `{
	"bundle_version": 7,
	"policies": [{"id": "p", "spec": {"rules": [
		{"name": "each", "limit_keys": ["header:x-api-key"], "algorithm": "token_bucket", "algorithm_config": {"rate": "1/10h", "burst": 3}},
		{"name": "several", "limit_keys": ["header:x-several"], "limits": [
			{"name": "fast", "algorithm": "token_bucket", "rate": "1/10h", "burst": 9},
			{"name": "slow", "algorithm": "sliding_window", "tokens": 90, "window": "10h"}]},
		{"name": "staged", "limit_keys": ["header:x-staged"], "algorithm": "token_bucket", "algorithm_config": {"rate": "1/10h", "burst": 10,
			"staged_actions": [{"threshold": 10, "action": "warn"}, {"threshold": 100, "action": "reject"}]}},
		{"name": "queue", "limit_keys": ["header:x-queue"], "algorithm": "leaky_bucket", "algorithm_config": {"rate": "1/10h", "queue": 5}},
		{"name": "running", "limit_keys": ["header:x-running"], "algorithm": "concurrency", "algorithm_config": {"max": 1, "lease": "1h"}},
		{"name": "strict", "match": {"path": "/strict"}, "limit_keys": ["header:x-user"], "on_missing": "deny", "algorithm_config": {"rps": 1, "burst": 1}},
		{"name": "quiet", "match": {"path": "/quiet"}, "limit_keys": [], "mode": "shadow", "algorithm_config": {"rate": "1/10h", "burst": 1}},
		{"name": "plan", "match": {"jwt:plan": "pro"}, "limit_keys": ["jwt:sub"], "algorithm_config": {"rps": 1, "burst": 1}}]}}],
	"overrides": [{"id": "in-file", "action": "allow", "match": {"header:x-api-key": "friend"}, "reason": "a friend", "author": "kim", "expires_at": "2099-01-01T00:00:00Z"}]
}`

// settings have everything served, to three tokens.
const settings = `
policy: policy.json
decision_profile: nginx-lua
trusted_proxies: [127.0.0.1]
rate_limit_fields: [draft-11, legacy, x]
max_header_bytes: 4096
max_wait: 24h
timeouts: {api_request: 2m}
admin_tokens:
  - {name: r, role: read, token: "token-of-the-reader"}
  - {name: o, role: operate, token: "token-of-the-operator"}
  - {name: c, role: configure, token: "token-of-the-chief"}
`

var tokens = map[string]string{"read": "token-of-the-reader", "operate": "token-of-the-operator", "configure": "token-of-the-chief"}

// newService starts the real server.
func newService(t *testing.T) *service {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "policy.json"), []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	server := meted.Start(t, settings, dir)
	return describe(t, server.URL, server.AdminURL)
}
