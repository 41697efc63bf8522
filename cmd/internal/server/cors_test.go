// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// With the cookbook's policy and cors_origins, a script of another origin can read a denial. A preflight
// passes while its request is denied. No CORS field occurs twice.
func TestGateway_CORS(t *testing.T) {
	t.Parallel()
	const app = "https://app.example.com"
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", app)
		if r.Method == http.MethodOptions {
			w.Header().Set("Access-Control-Allow-Headers", "x-api-key")
			w.WriteHeader(http.StatusNoContent)
		}
	}))
	defer upstream.Close()
	c := testConfig()
	c.Upstream, c.Policy, c.CORSOrigins = mustURL(upstream.URL), "../../../examples/cookbook/cors.yaml", []string{app}
	s := start(t, c)
	ask := func(method string, fields ...string) *http.Response {
		t.Helper()
		r, err := http.NewRequest(method, s.main+"/v1/items", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Origin", app)
		for i := 0; i < len(fields); i += 2 {
			r.Header.Set(fields[i], fields[i+1])
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if got := resp.Header.Values("Access-Control-Allow-Origin"); len(got) != 1 || got[0] != app {
			t.Fatalf("%s: got %d with Access-Control-Allow-Origin %q, want %s once", method, resp.StatusCode, got, app)
		}
		return resp
	}
	// More than the bucket holds and refills while this runs.
	var denied *http.Response
	for range 1000 {
		if resp := ask("GET", "X-Api-Key", "k1"); resp.StatusCode == http.StatusTooManyRequests {
			denied = resp
			break
		}
	}
	if denied == nil {
		t.Fatal("1000 requests, and none was denied")
	}
	if h := denied.Header; h.Get("Retry-After") == "" || h.Get("Access-Control-Expose-Headers") == "" || h.Get("Access-Control-Allow-Credentials") != "true" {
		t.Errorf("got a denial with %v, want one that a script can read", h)
	}
	if resp := ask("OPTIONS", "Access-Control-Request-Method", "GET", "Access-Control-Request-Headers", "x-api-key"); resp.StatusCode != http.StatusNoContent {
		t.Errorf("got %d for the preflight of a denied request, want 204", resp.StatusCode)
	}
}
