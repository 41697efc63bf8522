// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
)

// A page with a name that was rebound to 127.0.0.1 sees the admin API as its own origin. The server
// rejects its requests.
func TestAttack_Rebinding(t *testing.T) {
	t.Parallel()
	s := start(t, testConfig())
	for _, tt := range []struct {
		method, path, host string
		want               int
	}{
		{"GET", "/v1/overrides", "evil.example:8081", 421},
		{"PUT", "/v1/overrides", "evil.example", 421},
		{"DELETE", "/v1/overrides/x?author=a&reason=b", "evil.example", 421},
		{"POST", "/v1/reset", "127.0.0.1.evil.example", 421},
		{"POST", "/v1/explain", "localhost.evil.example", 421},
		{"POST", "/v1/take", "evil.example", 421},
		{"GET", "/dashboard/", "evil.example:8081", 421},
		{"GET", "/v1/me", "evil.example:8081", 421},
		{"GET", "/v1/me", "localhost:8081", 200},
		{"GET", "/v1/overrides", "localhost:8081", 200},
		{"GET", "/v1/overrides", "mete.localhost", 200},
		{"GET", "/v1/overrides", "127.0.0.1:8081", 200},
		{"GET", "/v1/overrides", "[::1]:8081", 200},
		{"GET", "/livez", "pod.example", 200},
		{"GET", "/metrics", "pod.example", 200},
	} {
		req, err := http.NewRequest(tt.method, s.admin+tt.path, strings.NewReader(`{"attributes":{}}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = tt.host
		req.Header.Set("Origin", "http://"+tt.host)
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != tt.want {
			t.Errorf("%s %s of host %s: got %d %s, want %d", tt.method, tt.path, tt.host, resp.StatusCode, body, tt.want)
		}
	}
}

// The main address serves the API as well. A page whose name resolves to 127.0.0.1 would
// take tokens there in anybody's name. Programs ask by address or as localhost.
func TestAttack_RebindingAtTheMainAddress(t *testing.T) {
	t.Parallel()
	s := start(t, testConfig())
	port := portOf(t, s.main)
	for _, tt := range []struct {
		method, path, host, origin string
		want                       int
	}{
		{"POST", "/v1/take", "evil.example:" + port, "http://evil.example:" + port, 421},
		{"POST", "/v1/take", "evil.example", "http://evil.example", 421},
		{"POST", "/v1/take", "127.0.0.1.evil.example", "", 421},
		{"POST", "/v1/peek", "evil.example:" + port, "http://evil.example:" + port, 421},
		{"GET", "/v1/take", "evil.example:" + port, "", 421}, // a browser sends no Origin with a GET of the same origin
		{"GET", "/v1/decision", "evil.example:" + port, "", 421},
		{"GET", "/v1/bucket", "evil.example:" + port, "", 421},
		{"GET", "/dashboard/", "evil.example:" + port, "", 421},
		{"POST", "/v1/take", "localhost:" + port, "http://localhost:" + port, 200},
		{"POST", "/v1/take", "127.0.0.1:" + port, "", 200},
		{"POST", "/v1/take", "[::1]:" + port, "", 200},
		{"GET", "/livez", "pod.example", "", 200},
		{"GET", "/openapi.json", "pod.example", "", 200},
	} {
		got := sendAs(t, tt.method, s.main+tt.path, tt.host, map[string]string{"Origin": tt.origin})
		if got != tt.want {
			t.Errorf("%s %s with Host %s: got %d, want %d", tt.method, tt.path, tt.host, got, tt.want)
		}
	}
}

// Gateways on the same machine pass on the Host of their clients, or write the name of
// an upstream. Neither has the port of mete, which a browser that connects to mete writes.
func TestAttack_RebindingAtDecisions(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.DecisionProfile, c.TrustedProxies = "nginx", []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	s := start(t, c)
	for at, address := range map[string]string{"main": s.main, "admin": s.admin} {
		port := portOf(t, address)
		for _, tt := range []struct {
			host string
			want int
		}{
			{"mete", 200},              // nginx: the name of the upstream
			{"shop.example", 200},      // Caddy: the client's host
			{"shop.example:8088", 200}, // the same, of a gateway on another port
			{"127.0.0.1:" + port, 200},
			{"evil.example:" + port, 421},
		} {
			got := sendAs(t, "GET", address+"/v1/decision", tt.host, map[string]string{
				"X-Original-Method": "GET", "X-Original-Uri": "/", "X-Original-Host": "shop.example", "X-Forwarded-For": "192.0.2.1",
				"Origin": "http://" + tt.host, "Sec-Fetch-Site": "same-origin", // of the client, which gateways pass on
			})
			if got != tt.want {
				t.Errorf("/v1/decision at the %s address with Host %s: got %d, want %d", at, tt.host, got, tt.want)
			}
		}
	}
}

func portOf(t *testing.T, url string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// sendAs sends a request with the Host and all nonempty fields, and returns the status.
func sendAs(t *testing.T, method, url, host string, fields map[string]string) int {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(`{"attributes":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	req.Header.Set("Content-Type", "application/json")
	for name, value := range fields {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}
