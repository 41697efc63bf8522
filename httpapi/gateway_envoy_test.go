// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/metehq/mete/httpapi"
)

// envoyAddress serves the API with the profile envoy at a real address.
func envoyAddress(t *testing.T) string {
	t.Helper()
	api, _ := newAPI(t, perPlace, httpapi.Config{Admin: true, Gateway: httpapi.Gateway{
		Profile: httpapi.ProfileEnvoy, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, DisableJitter: true,
	}})
	s := httptest.NewServer(api)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// send sends a request line and a Host as they are, because a client would change the target.
func send(t *testing.T, address, method, target, client string) *http.Response {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: api.example\r\nX-Forwarded-For: %s\r\nContent-Length: 0\r\nX-Original-URI: /other\r\n\r\n", method, target, client)
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%s %s: %v", method, target, err)
	}
	return resp
}

// Envoy appends the client's target to its prefix and keeps its method. The path is matched as the client sent it.
func TestDecision_Envoy(t *testing.T) {
	address := envoyAddress(t)
	for i, tt := range []struct {
		method, target string // of the client
		status         int
		rule           string
	}{
		{"GET", "/cheap", 200, "cheap"},
		{"GET", "/cheap?x=1", 200, "cheap"},
		{"GET", "/%63heap", 200, "cheap"},
		{"GET", "//cheap", 200, "cheap"},
		{"GET", "/x/../cheap", 200, "cheap"},
		{"GET", "/../../v1/take", 200, "other"},
		{"GET", "/../cheap", 200, "cheap"},
		{"GET", "/cheap/../../cheap", 200, "cheap"},
		{"POST", "/cheap", 200, "other"},
		{"HEAD", "/cheap", 200, "cheap"},
		{"PROPFIND", "/cheap", 200, "other"},
		{"GET", "/", 200, "other"},
		{"GET", "/cheap/", 200, "other"},
		{"GET", "/cheap%3Fx=1", 200, "other"},
		{"GET", "/v1/decision/cheap", 200, "other"},
		{"GET", "/v1/reset", 200, "other"},
		{"GET", "/cheap/%2e%2e/costly", 400, ""},
		{"GET", "/x%2f..%2fcheap", 400, ""},
		{"GET", "/x/..;/cheap", 400, ""},
		{"GET", "/cheap%00", 400, ""},
		{"GET", "/cheap#x", 400, ""},
		{"GET", "/%zz", 400, ""},
		{"GET", "", 400, ""},
		{"GET", "?x=1", 400, ""},
		{"GET", "%2Fcheap", 400, ""},
		{"GET", "x", 404, ""},
		{"OPTIONS", "*", 404, ""},
	} {
		resp := send(t, address, tt.method, "/v1/decision"+tt.target, fmt.Sprintf("198.51.100.%d", i))
		got, _, _ := strings.Cut(resp.Header.Get("RateLimit"), ";")
		if tt.method == "HEAD" && tt.rule == "cheap" {
			tt.rule = "other" // the rule is for GET only
		}
		if resp.StatusCode != tt.status || strings.Trim(got, `"`) != tt.rule {
			body, _ := io.ReadAll(resp.Body)
			t.Errorf("%s %s: got %d with the rule %s, want %d with %q\n%s", tt.method, tt.target, resp.StatusCode, got, tt.status, tt.rule, body)
		}
	}
}

func TestDecision_EnvoyDenies(t *testing.T) {
	address := envoyAddress(t)
	for _, want := range []int{200, 429, 429} {
		resp := send(t, address, "GET", "/v1/decision/cheap", "198.51.100.7")
		if resp.StatusCode != want || (want == 429) != (resp.Header.Get("Retry-After") == "2") || resp.Header.Get("RateLimit") == "" {
			t.Errorf("got %d with %v, want %d with the fields", resp.StatusCode, resp.Header, want)
		}
	}
	if resp := send(t, address, "GET", "/v1/decision/cheap", "198.51.100.8"); resp.StatusCode != 200 {
		t.Errorf("another client: got %d, want 200", resp.StatusCode)
	}
}

// Other profiles serve nothing below the endpoint.
func TestDecision_OnlyEnvoyHasPathsBelow(t *testing.T) {
	for profile, headers := range cheapBy {
		r := httptest.NewRequest("GET", "/v1/decision/cheap", nil)
		r.RemoteAddr = gatewayAddr + ":4711"
		for _, header := range headers {
			name, value, _ := strings.Cut(header, ": ")
			r.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		gatewayAPI(t, profile).ServeHTTP(w, r)
		if w.Code != 404 {
			t.Errorf("%s: got %d, want 404", profile, w.Code)
		}
	}
}
