// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/proxy"
	"github.com/metehq/mete/storetest"
)

// Neither the upstream nor the rules see fields that Connection names (RFC 9110, section 7.6.1) or that clients
// may not send. Otherwise a client could evade the limit of its key.
func TestRulesSeeForwardedFields(t *testing.T) {
	m, err := policy.Load([]byte(`{"rules": [
		{"name": "known", "limit_keys": ["header:x-api-key"], "algorithm": "token_bucket", "algorithm_config": {"tokens_per_second": 1, "burst": 1}},
		{"name": "session", "limit_keys": ["cookie:s"], "algorithm": "token_bucket", "algorithm_config": {"tokens_per_second": 1, "burst": 1}},
		{"name": "odd", "limit_keys": ["header:x_api_key"], "algorithm": "token_bucket", "algorithm_config": {"tokens_per_second": 1, "burst": 1}},
		{"name": "anonymous", "limit_keys": ["ip:address"], "match": {"header:x-api-key": {"not": "*"}, "cookie:s": {"not": "*"}, "header:x_api_key": {"not": "*"},
		 "header:x-real-ip": {"not": "*"}, "header:x-forwarded-user": {"not": "*"}, "header:x-forwarded-for": {"not": "*"}}, "algorithm": "token_bucket", "algorithm_config": {"tokens_per_second": 1, "burst": 1}}]}`), policy.Options{})
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
	anonymous := make(chan string, 100)
	upstream := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Api-Key") == "" && r.Header.Get("Cookie") == "" {
			anonymous <- fmt.Sprint(r.Header)
		}
	})
	front := strings.TrimPrefix(serveProxy(t, upstream, mw, proxy.Config{}), "http://")
	for i := range 5 {
		for _, fields := range []string{
			"Connection: close, X-Api-Key\r\nX-Api-Key: k%d",
			"Connection: close\r\nConnection: keep-alive , x-api-KEY\r\nX-Api-Key: k%d",
			"Connection: close, cookie\r\nCookie: s=%d",
			"Connection: close\r\nX_Api_Key: k%d",
			"Connection: close\r\nX-Real-IP: 192.0.2.%d",
			"Connection: close\r\nX-Forwarded-User: u%d",
			"Connection: close\r\nX-Forwarded-For: 192.0.2.%d",
		} {
			raw(t, front, "GET / HTTP/1.1\r\nHost: a\r\n"+fmt.Sprintf(fields, i)+"\r\n\r\n")
		}
	}
	if n := len(anonymous); n != 1 {
		t.Errorf("%d requests came to the upstream without a key, and one was to pass", n)
	}
	if got := raw(t, front, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-Api-Key: k9\r\n\r\n"); got != 200 {
		t.Errorf("a request with a key: got %d, want 200", got)
	}
}
