// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
)

// Envoy appends the client's path to /v1/decision. No path of a client reaches another endpoint, or needs a token.
func TestDecision_Envoy(t *testing.T) {
	t.Parallel()
	c := withTokens()
	c.DecisionProfile, c.TrustedProxies = "envoy", []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	s := start(t, c)
	for _, address := range []string{s.main, s.admin} {
		address = strings.TrimPrefix(address, "http://")
		_, port, _ := net.SplitHostPort(address)
		for _, tt := range []struct {
			method, target, host string
			want                 int
		}{
			{"GET", "/v1/items?page=2", "shop.example", 200},
			{"PROPFIND", "/", "shop.example", 200},
			{"POST", "/v1/reset", "shop.example", 200},
			{"POST", "/../reset", "shop.example", 200},
			{"POST", "/../../metrics", "shop.example", 200},
			{"GET", "/%2e%2e/reset", "shop.example", 200},
			{"GET", "/metrics", "shop.example:8088", 200},
			{"GET", "/", "evil.example:" + port, 421},
			{"GET", "/v1/items", "evil.example:" + port, 421},
			{"GET", "%2f..%2freset", "shop.example", 400},
			{"GET", "", "shop.example", 400},
		} {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(conn, "%s /v1/decision%s HTTP/1.1\r\nHost: %s\r\nX-Forwarded-For: 192.0.2.1\r\nAuthorization: Bearer of-the-client\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", tt.method, tt.target, tt.host)
			resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: tt.method})
			if err != nil {
				t.Errorf("%s %s: %v", tt.method, tt.target, err)
			} else if resp.Body.Close(); resp.StatusCode != tt.want || resp.Header.Get("WWW-Authenticate") != "" {
				t.Errorf("%s %s to %s: got %d, want %d", tt.method, tt.target, address, resp.StatusCode, tt.want)
			}
			conn.Close()
		}
	}
}
