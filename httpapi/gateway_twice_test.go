// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/metehq/mete/httpapi"
)

// A repeated or ambiguous value is not counted under one value and served under another.
func TestDecision_RejectsDuplicates(t *testing.T) {
	const rules = `{"rules": [
		{"name": "key", "limit_keys": ["header:x-api-key"], "algorithm": "token_bucket", "algorithm_config": {"rps": 1, "burst": 100}},
		{"name": "query", "limit_keys": ["query:api_key"], "algorithm": "token_bucket", "algorithm_config": {"rps": 1, "burst": 100}},
		{"name": "delete", "limit_keys": [], "match": {"method": "DELETE"}, "algorithm": "token_bucket", "algorithm_config": {"rps": 1, "burst": 100}},
		{"name": "shadow", "mode": "shadow", "limit_keys": ["cookie:sid"], "algorithm": "token_bucket", "algorithm_config": {"rps": 1, "burst": 100}}]}`
	api, _ := newAPI(t, rules, httpapi.Config{Gateway: httpapi.Gateway{
		Profile: httpapi.ProfileHAProxy, TrustedProxies: []netip.Prefix{netip.MustParsePrefix(gatewayAddr + "/32")},
	}})
	for _, tt := range []struct {
		uri    string
		fields []string
		names  string // in the problem; "": it is allowed
	}{
		{"/", []string{"X-Api-Key: a"}, ""},
		{"/?api_key=a", []string{"X-Other: a", "X-Other: b", "X_other: c"}, ""},
		{"/", []string{"X-Api-Key: a", "X-Api-Key: real"}, "x-api-key"},
		{"/", []string{"X_Api_Key: real"}, "X_api_key"},
		{"/?api_key=a&api%5Fkey=real", nil, "api_key"},
		{"/?x=1;api_key=real", nil, "api_key"},
		{"/?%u0061pi_key=real", nil, "api_key"},
		{"/", []string{"X_HTTP_Method_Override: DELETE"}, "X_http_method_override"},
		{"/", []string{"Cookie: sid=1; sid=2"}, ""},
	} {
		w := ask(api, "GET", append([]string{"X-Original-Method: GET", "X-Original-URI: " + tt.uri, "X-Original-Host: a.example"}, tt.fields...)...)
		want := 200
		if tt.names != "" {
			want = 400
		}
		if w.Code != want || !strings.Contains(w.Body.String(), tt.names) {
			t.Errorf("%s with %q: got %d %s, want %d that names %q", tt.uri, tt.fields, w.Code, w.Body, want, tt.names)
		}
	}
}
