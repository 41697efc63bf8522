// SPDX-License-Identifier: Apache-2.0

package openapi_test

import (
	"encoding/json"
	"testing"
)

// askHolds ends holds that have expired. A hold of a millisecond has nearly always expired at the next request.
func (s *service) askHolds(t *testing.T) {
	t.Helper()
	const attempts = 100
	for path, members := range map[string]string{"/v1/settle": `,"cost":1`, "/v1/release": ``, "/v1/renew": `,"for":"1ms"`} {
		for i := 0; ; i++ {
			a := s.ask(t, question{base: s.main, method: "POST", target: "/v1/hold", body: `{"attributes":{"header:x-api-key":"held"},"cost":0.001,"ttl":"1ms","on_expiry":"refund"}`})
			var held struct{ Hold string }
			if err := json.Unmarshal([]byte(a.body), &held); err != nil || held.Hold == "" {
				t.Fatalf("hold: %d %s", a.status, a.body)
			}
			a = s.ask(t, question{base: s.main, method: "POST", target: path, body: `{"hold":"` + held.Hold + `"` + members + `}`})
			if a.status == 409 {
				break
			}
			if i == attempts {
				t.Fatalf("%s: %d %s, want 409", path, a.status, a.body)
			}
		}
	}
}
