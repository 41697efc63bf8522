// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// A page in a browser on this machine, whose name was made to be 127.0.0.1 after it
// was loaded, has the admin API for its own origin, and is yet not served.
func TestAttack_Rebinding(t *testing.T) {
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
		{"GET", "/dashboard/data/me", "evil.example:8081", 421},
		{"GET", "/dashboard/data/me", "localhost:8081", 200},
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
