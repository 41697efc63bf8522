// SPDX-License-Identifier: Apache-2.0

package envoyapi_test

import (
	"maps"
	"net/http/httptest"
	"net/netip"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/metehq/mete"
	"github.com/metehq/mete/envoyapi"
	"github.com/metehq/mete/httpapi"
)

const (
	perClient = `{"name": "per-client", "limit_keys": ["ip:address"], "algorithm_config": {"rate": "1/1s", "burst": 2}}`
	perKey    = `{"name": "per-key", "limit_keys": ["header:x-api-key"], "on_missing": "deny", "algorithm_config": {"rate": "1/1s", "burst": 2}}`
	glass     = `{"rules": [` + perClient + `], "break_glass": {"reason": "r", "author": "a", "expires_at": "2100-01-01T00:00:00Z"}}`
	blocked   = `{"rules": [` + perClient + `], "overrides": [{"id": "b", "action": "block", "match": {"ip:address": "198.51.100.7"},
		"reason": "r", "author": "a", "expires_at": "2023-11-14T22:15:00Z"}]}`
)

// A request gets the same status, header fields and body through the gRPC service as through /v1/decision.
func TestCheck_AgreesWithHTTP(t *testing.T) {
	get := call{"GET", "/v1/items?x=1", "api.example", []string{"X-Forwarded-For: 198.51.100.7"}}
	with := func(fields ...string) call {
		c := get
		c.fields = append(slices.Clone(c.fields), fields...)
		return c
	}
	at := func(target string) call { c := get; c.target = target; return c }
	by := func(method string) call { c := get; c.method = method; return c }
	for _, tt := range []struct {
		name   string
		rules  string
		store  mete.Store // nil: one that works
		call   call
		status []int // of the same request again and again
	}{
		{"denied", perClient, nil, get, []int{200, 200, 429, 429}},
		{"denied, HEAD", perClient, nil, by("HEAD"), []int{200, 200, 429}},
		{"denied, POST", perClient, nil, by("POST"), []int{200, 200, 429}},
		{"never", `{"name": "slow", "limit_keys": [], "algorithm_config": {"rate": "1/10s", "burst": 10, "fixed_cost": 5,
			"staged_actions": [{"threshold": 50, "action": "throttle", "delay": "2s"}]}}`, nil, get, []int{429}},
		{"shadow", `{"name": "shadow", "mode": "shadow", "limit_keys": [], "algorithm_config": {"rate": "1/1s", "burst": 1}}`, nil, get, []int{200, 200, 200}},
		{"no rule", `{"name": "other", "limit_keys": [], "match": {"path": "/other"}, "algorithm_config": {"rate": "1/1s", "burst": 1}}`, nil, get, []int{200, 200}},
		{"several rules", perClient + "," + perKey, nil, with("X-Api-Key: k"), []int{200, 200, 429}},
		{"a warning", `{"name": "w", "limit_keys": [], "algorithm_config": {"rate": "1/1s", "burst": 4, "staged_actions": [{"threshold": 50, "action": "warn"}]}}`, nil, get, []int{200, 200, 200, 200, 429}},
		{"a longer queue than the wait", `{"name": "q", "limit_keys": [], "algorithm": "leaky_bucket", "algorithm_config": {"rate": "1/1h", "queue": 5}}`, nil, get, []int{200, 429}},
		{"open", `{"name": "open", "limit_keys": [], "on_store_error": "open", "algorithm_config": {"rate": "1/1s", "burst": 1}}`, downStore{}, get, []int{200, 200}},
		{"closed", `{"name": "closed", "limit_keys": [], "on_store_error": "closed", "algorithm_config": {"rate": "1/1s", "burst": 1}}`, downStore{}, get, []int{503}},
		{"local", `{"name": "local", "limit_keys": [], "on_store_error": "local", "algorithm_config": {"rate": "1/1s", "burst": 1}}`, downStore{}, get, []int{200, 429}},
		{"break glass", glass, nil, get, []int{200, 200, 200, 200}},
		{"blocked", blocked, nil, get, []int{429}},
		{"a missing attribute", perKey, nil, get, []int{403}},
		{"an ambiguous path", `{"name": "p", "limit_keys": ["path"], "algorithm_config": {"rate": "1/1s", "burst": 9}}`, nil, at("/a/%2e%2e/b"), []int{400}},
		{"an ambiguous header", perKey, nil, with("X-Api-Key: a", "X-Api-Key: b"), []int{400}},
		{"a look-alike", perKey, nil, with("X-Api-Key: a", "X_Api_Key: b"), []int{400}},
		{"an ambiguous method", `{"name": "m", "limit_keys": ["method"], "algorithm_config": {"rate": "1/1s", "burst": 9}}`, nil, with("X-HTTP-Method-Override: PUT"), []int{400}},
		{"a repeated parameter", `{"name": "p", "limit_keys": ["query:k"], "algorithm_config": {"rate": "1/1s", "burst": 9}}`, nil, at("/?k=a&k=b"), []int{400}},
		{"repeated cookies", `{"name": "c", "limit_keys": ["cookie:sid"], "algorithm_config": {"rate": "1/1s", "burst": 9}}`, nil, with("Cookie: sid=a; sid=b"), []int{400}},
		{"lists", `{"name": "l", "limit_keys": ["header:accept"], "algorithm_config": {"rate": "1/1s", "burst": 1}}`, nil, with("Accept: a/b,c/d"), []int{200, 429}},
		{"another host", `{"name": "h", "limit_keys": [], "match": {"host": "api.example", "path": "/v1/*", "method": "GET"}, "algorithm_config": {"rate": "1/1s", "burst": 1}}`, nil, get, []int{200, 429}},
	} {
		for _, raw := range []bool{true, false} {
			proxies := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("192.0.2.1/32")}
			http, err := httpapi.New(newAuthzLimiter(t, tt.store, tt.rules), httpapi.Config{Gateway: httpapi.Gateway{
				Profile: httpapi.ProfileEnvoy, TrustedProxies: proxies, DisableJitter: true, MaxDelay: time.Second}})
			if err != nil {
				t.Fatal(err)
			}
			client := dialAuthz(t, newAuthz(t, newAuthzLimiter(t, tt.store, tt.rules), envoyapi.AuthorizationConfig{
				TrustedProxies: proxies, DisableJitter: true, MaxDelay: time.Second}))
			for i, want := range tt.status {
				byHTTP := askHTTP(http, tt.call)
				answer, err := client.Check(t.Context(), tt.call.check("198.51.100.7", raw))
				if err != nil {
					t.Fatalf("%s: %v", tt.name, err)
				}
				got := outcomeOf(answer)
				if got.status != want || byHTTP.status != want || got.body != byHTTP.body || !maps.EqualFunc(got.fields, byHTTP.fields, slices.Equal) {
					t.Errorf("%s, raw %v, request %d: want %d\ngRPC: %d %v %s\nHTTP: %d %v %s", tt.name, raw, i, want, got.status, got.fields, got.body, byHTTP.status, byHTTP.fields, byHTTP.body)
				}
				code := map[int]codes.Code{200: codes.OK, 429: codes.ResourceExhausted}
				if wantCode, known := code[want]; !known && codes.Code(answer.GetStatus().GetCode()) != codes.PermissionDenied || known && codes.Code(answer.GetStatus().GetCode()) != wantCode {
					t.Errorf("%s: got status %v for %d", tt.name, answer.GetStatus(), want)
				}
			}
		}
	}
}

// askHTTP asks /v1/decision as Envoy would.
func askHTTP(api *httpapi.API, c call) outcome {
	r := httptest.NewRequest(c.method, "/v1/decision"+c.target, nil)
	r.Host, r.RemoteAddr = c.host, "192.0.2.1:4711"
	for _, field := range c.fields {
		name, value, _ := cutField(field)
		r.Header.Add(name, value)
	}
	w := httptest.NewRecorder()
	api.ServeHTTP(w, r)
	if w.Code == 200 {
		// It concerns the answer to Envoy, not the response to the client.
		w.Header().Del("Cache-Control")
	}
	return outcome{w.Code, w.Header(), w.Body.String()}
}
