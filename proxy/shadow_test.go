// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/proxy"
	"github.com/metehq/mete/storetest"
)

// The proxy forwards requests that only a shadow rule disputes. If names with "_" pass, it rejects look-alikes of
// names in enforced rules.
func TestProxy_EnforcedRulesRejectAmbiguity(t *testing.T) {
	m, err := policy.Load([]byte(`{"rules": [
		{"name": "on", "limit_keys": ["header:x-api-key"], "algorithm": "token_bucket", "algorithm_config": {"rps": 1, "burst": 100}},
		{"name": "shadow", "mode": "shadow", "limit_keys": ["cookie:sid", "header:x-plan"], "algorithm": "token_bucket", "algorithm_config": {"rps": 1, "burst": 100}}]}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lim, err := mete.New(storetest.NewModel(func() bucket.Instant { return 1 }), m, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	mw, err := httplimit.New(lim, httplimit.Config{})
	if err != nil {
		t.Fatal(err)
	}
	target, _ := url.Parse(serve(t, func(http.ResponseWriter, *http.Request) {}))
	for _, tt := range []struct {
		setting string
		header  http.Header
		status  int
	}{
		{"drop", http.Header{"Cookie": {"sid=1", "sid=2"}, "X-Plan": {"a", "b"}}, 200},
		{"drop", http.Header{"X-Api-Key": {"a", "b"}}, 400},
		{"drop", http.Header{"X_Api_Key": {"real"}}, 200},
		{"pass", http.Header{"X_Api_Key": {"real"}}, 400},
		{"pass", http.Header{"X-Api-Key": {"a"}, "X-Api.key": {"real"}}, 400},
		{"pass", http.Header{"X-Api-Key": {"a"}, "X_plan": {"real"}, "X_other": {"b"}}, 200},
	} {
		p, err := proxy.New(target, mw, proxy.Config{UnderscoresInHeaders: tt.setting})
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest("GET", "/", nil)
		r.Header = tt.header
		w := httptest.NewRecorder()
		if p.ServeHTTP(w, r); w.Code != tt.status {
			t.Errorf("%s, %v: got %d %s, want %d", tt.setting, tt.header, w.Code, w.Body, tt.status)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}
