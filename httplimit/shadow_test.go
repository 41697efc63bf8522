// SPDX-License-Identifier: Apache-2.0

package httplimit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/storetest"
)

// A rule in shadow, or off, refuses no request for what occurs twice. An enforced rule
// that reads the same name does.
func TestWrap_ShadowRefusesNothing(t *testing.T) {
	const form = `{"rules": [
		{"name": "key", "mode": %q, "limit_keys": ["cookie:sid"], "match": {"header:x-plan": "paid", "method": "POST"}, "algorithm": "token_bucket",
		 "algorithm_config": {"rps": 1, "burst": 100, "cost_source": "query:cost"}},
		{"name": "all", "limit_keys": ["path"], "algorithm": "token_bucket", "algorithm_config": {"rps": 1, "burst": 100}}]%s}`
	const calm = `, "global_shadow": {"enabled": true, "reason": "r", "author": "a", "expires_at": "2100-01-01T00:00:00Z"}`
	for _, tt := range []struct {
		mode, state string
		status      int
	}{
		{"shadow", "", 200}, {"0%", "", 200}, {"off", "", 200}, {"enforce", calm, 200}, {"enforce", "", 400}, {"1%", "", 400},
	} {
		m, err := policy.Load(fmt.Appendf(nil, form, tt.mode, tt.state), policy.Options{})
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
		door := mw.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		for _, request := range []struct {
			target string
			header http.Header
		}{
			{"/", http.Header{"Cookie": {"sid=1", "sid=2"}, "X-Plan": {"paid"}}},
			{"/", http.Header{"X-Plan": {"paid", "free"}}},
			{"/?cost=1&cost=2", http.Header{"Cookie": {"sid=1"}, "X-Plan": {"paid"}}},
			{"/", http.Header{"X-Plan": {"paid"}, "X-Http-Method-Override": {"GET"}}},
		} {
			r := httptest.NewRequest("POST", request.target, nil)
			r.Header = request.header
			w := httptest.NewRecorder()
			if door.ServeHTTP(w, r); w.Code != tt.status {
				t.Errorf("%s%s, %s %v: got %d %s, want %d", tt.mode, tt.state, request.target, request.header, w.Code, w.Body, tt.status)
			}
		}
	}
}
