// SPDX-License-Identifier: Apache-2.0

package httplimit_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
)

// BenchmarkDecisions measures whole requests through the middleware. One policy has a single rule. The other has five rules, claims
// of a bearer token and loop detection. The third counts the tokens of a language model. Fairvisor's documentation claims 110,000
// decisions per second for the first and 67,000 for the second, on its own hardware.
func BenchmarkDecisions(b *testing.B) {
	const token = "Bearer eyJhbGciOiJIUzI1NiJ9.eyJvcmdfaWQiOiJhY21lIiwicGxhbiI6InBybyIsInN1YiI6InVzZXItMSJ9.c2lnbmF0dXJl"
	for _, bb := range []struct{ name, policy, path string }{
		{"simple", `{"rules": [{"name": "key", "limit_keys": ["header:x-api-key"], "tokens_per_second": 1000000, "burst": 1000000}]}`, "/v1/items"},
		{"five rules, claims and loops", `{"rules": [
			{"name": "org", "limit_keys": ["jwt:org_id"], "tokens_per_second": 1000000, "burst": 1000000},
			{"name": "user", "limit_keys": ["jwt:org_id", "jwt:sub"], "tokens_per_second": 1000000, "burst": 1000000},
			{"name": "plan", "limit_keys": ["jwt:plan"], "match": {"jwt:plan": "pro"}, "tokens_per_second": 1000000, "burst": 1000000},
			{"name": "path", "limit_keys": ["path"], "match": {"path": "/v1/*"}, "tokens_per_second": 1000000, "burst": 1000000},
			{"name": "day", "limit_keys": ["header:x-api-key"], "algorithm": "cost_based", "budget": 1000000000, "period": "1d"}],
			"loop_detection": {"enabled": true, "window_seconds": 1, "threshold_identical_requests": 1000000}}`, "/v1/items"},
		{"tokens of a model", `{"rules": [{"name": "chat", "limit_keys": ["jwt:org_id"], "match": {"ai:model": "*"}, "algorithm": "token_bucket_llm",
			"tokens_per_minute": 1000000000000, "tokens_per_day": 1000000000000}]}`, "/v1/chat/completions"},
	} {
		m, err := policy.Load([]byte(bb.policy), policy.Options{})
		if err != nil {
			b.Fatal(err)
		}
		store, err := memstore.New(memstore.Config{})
		if err != nil {
			b.Fatal(err)
		}
		limiter, err := mete.New(store, m, mete.Config{})
		if err != nil {
			b.Fatal(err)
		}
		mw, err := httplimit.New(limiter, httplimit.Config{UnverifiedClaims: true})
		if err != nil {
			b.Fatal(err)
		}
		handler := mw.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { chatAnswer(w) }))
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				r := httptest.NewRequest(http.MethodPost, bb.path, nil)
				r.Header.Set("X-Api-Key", "k-1234567890")
				r.Header.Set("Authorization", token)
				r.ContentLength = int64(len(chatRequest))
				for i := 0; pb.Next(); i++ {
					r.URL.RawQuery = "n=" + strconv.Itoa(i)
					r.Body = io.NopCloser(strings.NewReader(chatRequest))
					handler.ServeHTTP(discard{http.Header{}}, r)
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
		})
	}
}
