// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"strings"
	"testing"

	"github.com/metehq/mete/internal/testkit"
)

// What requests are matched by can be a key or an address: a mistake in it is logged
// with its place, and without it.
func TestReload_LogsNoSecretsOfMatches(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.Policy = policyFile(t, burst("1"))
	s := start(t, c)
	const rule = `"limit_keys": [], "algorithm": "token_bucket", "algorithm_config": {"rps": 1, "burst": 1}`
	for i, broken := range []string{
		`{"rules": [{"name": "r", "match": {"header:authorization": "hunter2*x"}, ` + rule + `}]}`,
		`{"rules": [{"name": "r", "match": {"header:x-api-key": "hunter2"}, ` + rule + `}, {"name": "r2", "match": {"header:x-api-key": "hunter2"}, ` + rule + `}]}`,
		`{"rules": [{"name": "r", ` + rule + `}], "overrides": [{"id": "o", "action": "block", "key": "hunter2", "reason": "r", "author": "a", "expires_at": "2100-01-01T00:00:00Z"}]}`,
		`{"rules": [{"name": "r", ` + rule + `}], "overrides": [{"id": "o", "action": "block", "match": {"jwt:sub": "hunter2*x"}, "reason": "r", "author": "a", "expires_at": "2100-01-01T00:00:00Z"}]}`,
		`{"rules": [{"name": "r", ` + rule + `}], "tests": [{"name": "t", "request": {"path": "/hunter2?x"}, "steps": [{"expect": "allowed"}]}]}`,
	} {
		mistakes := s.log.Count("policy error")
		write(t, c.Policy, broken)
		testkit.Until(t, "the broken file is noticed", func() bool { return s.log.Count("policy invalid") == i+1 && s.log.Count("policy error") > mistakes })
		if strings.Contains(s.log.String(), "hunter2") {
			t.Fatalf("%s: the log has what requests are matched by:\n%s", broken, s.log)
		}
	}
	write(t, c.Policy, burst("-1"))
	testkit.Until(t, "another mistake is logged with its value", func() bool { return s.log.Count("(got -1)") == 1 })
}
