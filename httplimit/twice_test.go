// SPDX-License-Identifier: Apache-2.0

package httplimit_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/storetest"
)

// A request is not counted under one value and served under another: a repeated value is rejected with a problem
// that names it.
func TestWrap_RejectsDuplicates(t *testing.T) {
	m, err := policy.Load([]byte(`{"rules": [
		{"name": "query", "limit_keys": ["query:api_key"], "algorithm": "token_bucket", "algorithm_config": {"rps": 1, "burst": 100}},
		{"name": "session", "limit_keys": ["cookie:sid"], "algorithm": "token_bucket", "algorithm_config": {"rps": 1, "burst": 100}},
		{"name": "delete", "limit_keys": ["ip:address"], "match": {"method": "DELETE"}, "algorithm": "token_bucket", "algorithm_config": {"rps": 1, "burst": 1}},
		{"name": "paid", "limit_keys": ["ip:address"], "match": {"header:x-plan": "paid"}, "algorithm": "token_bucket", "algorithm_config": {"rps": 1, "burst": 100, "cost_source": "header:x-cost"}}]}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lim, err := mete.New(storetest.NewModel(func() bucket.Instant { return 1 }), m, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	limit, err := bucket.NewLimit(100*bucket.Token, bucket.PerSecond(bucket.Token))
	if err != nil {
		t.Fatal(err)
	}
	mw, err := httplimit.New(lim, httplimit.Config{}, httplimit.Limit{Name: "key", Bucket: limit, Key: httplimit.ByHeader("X-Api-Key", httplimit.MissingSkip)})
	if err != nil {
		t.Fatal(err)
	}
	reached := 0
	door := mw.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }))
	for _, tt := range []struct {
		target string
		header http.Header
		names  string // in the problem; "": it passes
	}{
		{"/?api_key=a&x=1&x=2", http.Header{"X-Api-Key": {"a"}, "Accept": {"a", "b"}, "Cookie": {"sid=1; t=2", "t=3"}, "X-Plan": {"paid"}, "X-Cost": {"2"}}, ""},
		{"/", http.Header{"X-Api-Key": {"a", "real"}}, "x-api-key"},
		{"/", http.Header{"X-Plan": {"free", "paid"}}, "x-plan"},
		{"/", http.Header{"X-Plan": {"paid"}, "X-Cost": {"1", "50"}}, "x-cost"},
		{"/", http.Header{"Cookie": {"sid=1", "sid=2"}}, "sid"},
		{"/?api_key=a&api_key=b", nil, "api_key"},
		{"/?api%5Fkey=a&api_key=b", nil, "api_key"},
		{"/", http.Header{"X-Http-Method-Override": {"DELETE"}}, "X-Http-Method-Override"},
	} {
		r := httptest.NewRequest("POST", tt.target, nil)
		if tt.header != nil {
			r.Header = tt.header
		}
		before := reached
		w := httptest.NewRecorder()
		door.ServeHTTP(w, r)
		switch passed := reached > before; {
		case tt.names == "" && !passed:
			t.Errorf("%s %v: got %d %s, want it to pass", tt.target, tt.header, w.Code, w.Body)
		case tt.names != "" && (passed || w.Code != 400 || w.Header().Get("Content-Type") != "application/problem+json" || !strings.Contains(w.Body.String(), tt.names)):
			t.Errorf("%s %v: got %d %s, passed %v; want 400 that names %q", tt.target, tt.header, w.Code, w.Body, passed, tt.names)
		}
	}
}
