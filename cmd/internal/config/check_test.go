// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/internal/httpfacts"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/proxy"
)

func TestLoad_HidesPasswords(t *testing.T) {
	for _, upstream := range []string{
		"http://user:hunter2@127.0.0.1:3000", "ftp://user:hunter2@host", "user:hunter2@host:3000", "http://user:hunter2@host:port",
		"http:user:hunter2@host", "//user:hunter2@host", "http://user:hunter2@ho st/", "http:///user:hunter2@host", "hunter2",
	} {
		_, err := load("", []config.Setting{{Key: "upstream", Value: upstream}})
		if err == nil || !strings.Contains(err.Error(), "upstream: ") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("upstream %s: %v, want an error about it without the password", upstream, err)
		}
	}
}

// Settings that the gateway or API would reject are rejected with their line.
func TestLoad_RefusesWhatTheFrontDoorsRefuse(t *testing.T) {
	limiter := newLimiter(t)
	limit := func(c httplimit.Config) error {
		_, err := httplimit.New(limiter, c)
		return err
	}
	decide := func(g httpapi.Gateway) error {
		_, err := httpapi.New(limiter, httpapi.Config{Gateway: g})
		return err
	}
	forward := func(upstream string, c proxy.Config) error {
		u, err := url.Parse(upstream)
		if err != nil {
			return err
		}
		limited, err := httplimit.New(limiter, httplimit.Config{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = proxy.New(u, limited, c)
		return err
	}
	const good = "http://127.0.0.1:3000"
	prefix := func(s string) []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix(s)} }
	loopback := prefix("127.0.0.0/8")
	many := make([]netip.Prefix, httpfacts.MaxProxies+1)
	for i := range many {
		many[i] = loopback[0]
	}
	for _, tt := range []struct {
		settings string
		refused  error
	}{
		{"trusted_hops: -1", limit(httplimit.Config{TrustedHops: -1})},
		{"trusted_hops: 33", limit(httplimit.Config{TrustedHops: 33})},
		{"trusted_hops: 1\ntrusted_proxies: 127.0.0.0/8", limit(httplimit.Config{TrustedHops: 1, TrustedProxies: loopback})},
		{"trusted_proxies: 0.0.0.0/0", limit(httplimit.Config{TrustedProxies: prefix("0.0.0.0/0")})},
		{"trusted_proxies: \"::/0\"", limit(httplimit.Config{TrustedProxies: prefix("::/0")})},
		{"trusted_proxies: \"::ffff:10.0.0.0/104\"", limit(httplimit.Config{TrustedProxies: prefix("::ffff:10.0.0.0/104")})},
		{"trusted_proxies: " + strings.Repeat("127.0.0.0/8,", len(many)), limit(httplimit.Config{TrustedProxies: many})},
		{"forwarded_header: a b", limit(httplimit.Config{ForwardedHeader: "a b"})},
		{"forwarded_header: X-Förwarded", limit(httplimit.Config{ForwardedHeader: "X-Förwarded"})},
		{"forwarded_header: \"a\\x7f\"", limit(httplimit.Config{ForwardedHeader: "a\x7f"})},
		{"rate_limit_fields: draft-99", limit(httplimit.Config{Fields: []string{"draft-99"}})},
		{"cors_origins: [app.example.com]", limit(httplimit.Config{CORSOrigins: []string{"app.example.com"}})},
		{"cors_origins: ['*', https://a.example]", limit(httplimit.Config{CORSOrigins: []string{"*", "https://a.example"}})},
		{"rate_limit_fields: [none, x]", limit(httplimit.Config{Fields: []string{"none", "x"}})},
		{"decision_profile: apache\ntrusted_proxies: 127.0.0.0/8", decide(httpapi.Gateway{Profile: "apache", TrustedProxies: loopback})},
		{"decision_profile: nginx", decide(httpapi.Gateway{Profile: httpapi.ProfileNGINX})},
		{"upstream: ftp://127.0.0.1", forward("ftp://127.0.0.1", proxy.Config{})},
		{"upstream: /x", forward("/x", proxy.Config{})},
		{"upstream: localhost:3000", forward("localhost:3000", proxy.Config{})},
		{"upstream: http:x", forward("http:x", proxy.Config{})},
		{"upstream: http://u@127.0.0.1", forward("http://u@127.0.0.1", proxy.Config{})},
		{"upstream: http://127.0.0.1/?a=b", forward("http://127.0.0.1/?a=b", proxy.Config{})},
		{"upstream: \"http://127.0.0.1/#a\"", forward("http://127.0.0.1/#a", proxy.Config{})},
		{"max_body_bytes: -1", forward(good, proxy.Config{MaxBodyBytes: -1})},
		{"timeouts: { upstream_connect: -1s }", forward(good, proxy.Config{DialTimeout: -time.Second})},
		{"timeouts: { upstream_header: -1s }", forward(good, proxy.Config{HeaderTimeout: -time.Second})},
	} {
		if tt.refused == nil {
			t.Errorf("%.80s: the front door takes it: the test is out of date", tt.settings)
		}
		if _, err := load(write(t, tt.settings+"\n"), nil); err == nil {
			t.Errorf("%.80s: taken, but the front door says %v", tt.settings, tt.refused)
		}
	}
}

func newLimiter(t *testing.T) *mete.Limiter {
	t.Helper()
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := policy.Load([]byte(`{"name":"x","limit_keys":[],"algorithm":"token_bucket","algorithm_config":{"rps":1,"burst":1}}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	limiter, err := mete.New(store, m, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return limiter
}
