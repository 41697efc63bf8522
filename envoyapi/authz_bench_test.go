// SPDX-License-Identifier: Apache-2.0

package envoyapi_test

import (
	"testing"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"

	"github.com/metehq/mete/envoyapi"
)

const manyPerKey = `{"name": "per-key", "limit_keys": ["header:x-team"], "algorithm_config": {"rate": "1000000/1s", "burst": 1000000}}`

func typicalCheck(raw bool) *authv3.CheckRequest {
	return call{"GET", "/v1/items/42?page=2", "api.example", []string{
		"User-Agent: curl/7.88.1", "Accept: */*", "X-Team: red", "X-Forwarded-For: 203.0.113.9", "X-Forwarded-Proto: https", "X-Request-Id: 4e5f",
	}}.check("203.0.113.9", raw)
}

// maxCheckAllocs is the number of allocations of a decision: the request, its target, its raw values, the limiter's
// decision, and the parts of the response.
const maxCheckAllocs = 24

func TestCheck_Allocations(t *testing.T) {
	if raceEnabled {
		return // the race detector allocates
	}
	a := newAuthz(t, newAuthzLimiter(t, nil, manyPerKey), envoyapi.AuthorizationConfig{})
	for _, raw := range []bool{true, false} {
		req := typicalCheck(raw)
		got := testing.AllocsPerRun(200, func() {
			if answer, err := a.Check(t.Context(), req); err != nil || answer.GetOkResponse() == nil {
				t.Errorf("got %v, %v", answer, err)
			}
		})
		t.Logf("raw %v: %v allocations", raw, got)
		if got > maxCheckAllocs {
			t.Errorf("raw %v: got %v allocations, want at most %d", raw, got, maxCheckAllocs)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	for name, raw := range map[string]bool{"raw": true, "joined": false} {
		b.Run(name, func(b *testing.B) {
			a := newAuthz(b, newAuthzLimiter(b, nil, manyPerKey), envoyapi.AuthorizationConfig{})
			req := typicalCheck(raw)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := a.Check(b.Context(), req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
