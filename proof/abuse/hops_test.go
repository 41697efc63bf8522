// SPDX-License-Identifier: Apache-2.0

package abuse_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// spoofs are header fields that claim another client's address. The address replaces %s.
var spoofs = [][]string{
	{"X-Forwarded-For", "%s"},
	{"X-Forwarded-For", "%s, 127.0.0.1"},
	{"X-Forwarded-For", "127.0.0.1, %s"},
	{"X-Forwarded-For", "%s", "X-Forwarded-For", "%s"},
	{"x-forwarded-for", "%s"},
	{"Forwarded", "for=%s"},
	{"Forwarded", `for="%s";proto=https;by=127.0.0.1, for=127.0.0.1`},
	{"X-Real-IP", "%s"}, {"X-Client-IP", "%s"}, {"True-Client-IP", "%s"}, {"CF-Connecting-IP", "%s"},
	{"X-Cluster-Client-IP", "%s"}, {"X-Original-Forwarded-For", "%s"}, {"X-Envoy-External-Address", "%s"}, {"Via", "1.1 %s"},
}

// spoof replaces %s in fields with address.
func spoof(fields []string, address string) []string {
	var filled []string
	for _, f := range fields {
		filled = append(filled, strings.ReplaceAll(f, "%s", address))
	}
	return filled
}

// A client of the gateway cannot use another client's bucket, or get a new one, by sending headers.
func TestAbuse_SpoofedHops(t *testing.T) {
	t.Parallel()
	upstream := serve(t, func(http.ResponseWriter, *http.Request) {})
	s := start(t, perAddress("1"), "upstream: "+upstream.URL+"\n")
	if got := ask(t, http.MethodGet, s.URL, "").status; got != http.StatusOK {
		t.Fatalf("the first request: status %d, want 200", got)
	}
	for i, fields := range spoofs {
		spoofed := spoof(fields, fmt.Sprintf("203.0.113.%d", i+1))
		if got := ask(t, http.MethodGet, s.URL, "", spoofed...).status; got != http.StatusTooManyRequests {
			t.Errorf("%q: status %d, want 429 as without", spoofed, got)
		}
	}
}

// Behind a proxy that is trusted, the client is whom that proxy saw, whatever stands
// to the left of it.
func TestAbuse_SpoofedHopsBehindAProxy(t *testing.T) {
	t.Parallel()
	upstream := serve(t, func(http.ResponseWriter, *http.Request) {})
	const client, other = "198.51.100.7", "203.0.113.9"
	for _, tt := range []struct {
		name, settings string
		field          string
		append         func(spoofed string) string // what the trusted proxy makes of a client's own header
	}{
		{"trusted_proxies", "trusted_proxies: [127.0.0.0/8, 10.0.0.0/8]\n", "X-Forwarded-For",
			func(s string) string { return s + ", " + client + ", 10.1.2.3" }},
		{"trusted_hops", "trusted_hops: 2\n", "X-Forwarded-For", func(s string) string { return s + ", " + client + ", 192.0.2.200" }},
		{"Forwarded", "trusted_proxies: [127.0.0.0/8]\nforwarded_header: Forwarded\n", "Forwarded",
			func(s string) string { return `for="` + s + `", for="` + client + `:4711";proto=https` }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := start(t, perAddress("1"), "upstream: "+upstream.URL+"\n"+tt.settings)
			if got := ask(t, http.MethodGet, s.URL, "", tt.field, tt.append("192.0.2.1")).status; got != http.StatusOK {
				t.Fatalf("the first request: status %d, want 200", got)
			}
			for i, said := range []string{
				"192.0.2.1", other, "127.0.0.1", "10.9.9.9", "unknown", "_hidden", "", ",", ", , ,", "::ffff:" + client, "[::1]:80", "999.1.1.1",
				"198.51.100.7.evil.example", "<script>", strings.Repeat("1.1.1.1, ", 500) + "1.1.1.1",
			} {
				fields := []string{tt.field, tt.append(said), "X-Real-IP", fmt.Sprintf("203.0.113.%d", i), "X-Client-IP", other}
				if tt.field == "Forwarded" {
					fields = append(fields, "X-Forwarded-For", other)
				} else {
					fields = append(fields, "Forwarded", "for="+other)
				}
				if got := ask(t, http.MethodGet, s.URL, "", fields...).status; got != http.StatusTooManyRequests {
					t.Errorf("%q to the left: status %d, want 429", said, got)
				}
			}
			if got := ask(t, http.MethodGet, s.URL, "", tt.field, strings.Replace(tt.append("192.0.2.1"), client, other, 1)).status; got != http.StatusOK {
				t.Errorf("another client behind the same proxy: status %d, want 200", got)
			}
		})
	}
}

// One subscriber has a /64 of addresses, and one bucket.
func TestAbuse_RotatingIPv6(t *testing.T) {
	t.Parallel()
	upstream := serve(t, func(http.ResponseWriter, *http.Request) {})
	s := start(t, perAddress("1"), "upstream: "+upstream.URL+"\ntrusted_proxies: [127.0.0.0/8]\n")
	as := func(address string) int {
		return ask(t, http.MethodGet, s.URL, "", "X-Forwarded-For", address).status
	}
	if got := as("2001:db8:1:2::1"); got != http.StatusOK {
		t.Fatalf("the first request: status %d, want 200", got)
	}
	for i := range 200 {
		if address := fmt.Sprintf("2001:DB8:1:2:%x:%x::%x", i, 7*i, 31*i+2); as(address) != http.StatusTooManyRequests {
			t.Errorf("%s, of the same /64: admitted", address)
		}
	}
	for _, same := range []string{"[2001:db8:1:2::9]", "[2001:db8:1:2::9]:443", "2001:db8:1:2::9%eth0", "2001:0db8:0001:0002:0000:0000:0000:0009"} {
		if got := as(same); got != http.StatusTooManyRequests {
			t.Errorf("%s, another spelling: status %d, want 429", same, got)
		}
	}
	for _, next := range []string{"2001:db8:1:3::1", "192.0.2.5"} {
		if got := as(next); got != http.StatusOK {
			t.Errorf("%s, another client: status %d, want 200", next, got)
		}
	}
	for _, mapped := range []string{"::ffff:192.0.2.5", "::FFFF:c000:205", "[::ffff:192.0.2.5]:80"} {
		if got := as(mapped); got != http.StatusTooManyRequests {
			t.Errorf("%s, which is 192.0.2.5: status %d, want 429", mapped, got)
		}
	}
}

// Only the gateway can name the client, and only in the headers of its profile.
func TestAbuse_DecisionEndpoint(t *testing.T) {
	t.Parallel()
	policy := `{"rules": [
		{"name": "cheap", "limit_keys": ["path"], "match": {"path": "/cheap"}, "algorithm": "token_bucket", "algorithm_config": {"rate": "1/10h", "burst": 1000}},
		{"name": "dear", "limit_keys": ["path"], "match": {"path": "/dear"}, "algorithm": "token_bucket", "algorithm_config": {"rate": "1/10h", "burst": 1}}]}`
	profiles := map[string][]string{
		"nginx":   {"X-Original-Method", "GET", "X-Original-URI", "/dear", "X-Original-Host", "shop.example"},
		"traefik": {"X-Forwarded-Method", "GET", "X-Forwarded-Uri", "/dear", "X-Forwarded-Host", "shop.example"},
		"caddy":   {"X-Forwarded-Method", "GET", "X-Forwarded-Uri", "/dear", "X-Forwarded-Host", "shop.example"},
	}
	for profile, own := range profiles {
		t.Run(profile, func(t *testing.T) {
			denied := http.StatusTooManyRequests
			if profile == "nginx" {
				denied = http.StatusForbidden
			}
			s := start(t, policy, "decision_profile: "+profile+"\ntrusted_proxies: [127.0.0.1]\n")
			url := s.URL + "/v1/decision"
			if got := ask(t, http.MethodGet, url, "", own...).status; got != http.StatusOK {
				t.Fatalf("the first request: status %d, want 200", got)
			}
			foreign := []string{"X-Original-URI", "/cheap", "X-Original-URL", "/cheap", "X-Rewrite-URL", "/cheap", "X-Forwarded-Path", "/cheap", "X-Auth-Request-Redirect", "/cheap"}
			if profile == "nginx" {
				foreign[0] = "X-Forwarded-Uri"
			}
			if got := ask(t, http.MethodGet, url+"?x=/cheap", "", append(foreign, own...)...); got.status != denied {
				t.Errorf("with the headers of other gateways: %d %s, want %d", got.status, got.body, denied)
			}
			if got := ask(t, http.MethodGet, url, "", append([]string{own[2], "/cheap"}, own...)...); got.status != http.StatusBadRequest {
				t.Errorf("with %s twice: %d %s, want 400", own[2], got.status, got.body)
			}
			if got := ask(t, http.MethodGet, url, "", own[:2]...); got.status != http.StatusBadRequest {
				t.Errorf("without %s: %d %s, want 400", own[2], got.status, got.body)
			}

			stranger := start(t, policy, "decision_profile: "+profile+"\ntrusted_proxies: [192.0.2.1]\n")
			if got := ask(t, http.MethodGet, stranger.URL+"/v1/decision", "", append(own, "X-Forwarded-For", "192.0.2.1")...); got.status != http.StatusForbidden {
				t.Errorf("a stranger: %d %s, want 403", got.status, got.body)
			}
		})
	}
}
