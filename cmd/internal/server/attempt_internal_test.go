// SPDX-License-Identifier: Apache-2.0

package server

import (
	"strings"
	"testing"

	"github.com/metehq/mete/policy"
)

// The commands have all attributes that the first enforced rule needs, and more requests than
// it allows.
func TestAttempt(t *testing.T) {
	for name, test := range map[string]struct{ rules, api, gateway string }{
		"by address":   {`{"name": "a", "limit_keys": ["ip:address"], "algorithm_config": {"rps": 1, "burst": 20}}`, `"192.0.2.1"},"cost":15}`, `'http://mete/?n=[1-25]'`},
		"one token":    {`{"name": "a", "limit_keys": ["ip:address"], "algorithm_config": {"rps": 1, "burst": 1}}`, `,"cost":1}`, `?n=[1-6]'`},
		"huge":         {`{"name": "a", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 1000000}}`, `,"cost":750000}`, `?n=[1-2000]'`},
		"some request": {`{"name": "a", "limit_keys": ["header:x-key"], "match": {"path": "/it's", "method": "POST", "query:q": "a b"}, "algorithm_config": {"rps": 1, "burst": 4}}`, `"header:x-key":"example"`, `-H 'x-key: example' -X POST 'http://mete/it%27s?q=a+b&n=[1-9]'`},
		"claims are for the API": {`{"name": "a", "limit_keys": ["jwt:sub"], "algorithm_config": {"rps": 1, "burst": 8}},
			{"name": "b", "limit_keys": ["header:x-key"], "algorithm_config": {"rps": 1, "burst": 12}}`, `"jwt:sub":"example"`, `n=[1-17]'`},
		"shadow denies nobody": {`{"name": "a", "mode": "shadow", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 8}},
			{"name": "b", "limit_keys": ["header:x-key"], "algorithm_config": {"rps": 1, "burst": 12}}`, `"cost":9}`, `n=[1-17]'`},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := policy.Load([]byte(`{"rules": [`+test.rules+`]}`), policy.Options{})
			if err != nil {
				t.Fatal(err)
			}
			all := func(policy.Attribute) bool { return true }
			if got := newAttempt(m, all).apiCommands("http://mete/v1/take"); len(got) != 2 || !strings.Contains(got[1], test.api) {
				t.Errorf("%q does not contain %q", got, test.api)
			}
			if got := newAttempt(m, isSendable).gatewayCommands("http://mete"); len(got) != 2 || !strings.Contains(got[1], test.gateway) {
				t.Errorf("%q does not contain %q", got, test.gateway)
			}
		})
	}
}
