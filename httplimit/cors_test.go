// SPDX-License-Identifier: Apache-2.0

package httplimit_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/storetest"
)

// A script of an allowed origin can read a denial, and no other answer has fields of CORS.
func TestCORSOrigins(t *testing.T) {
	const app = "https://app.example.com"
	for _, tt := range []struct {
		what    string
		origins []string
		sent    []string
		allow   string // Access-Control-Allow-Origin of the denial
		cookies bool
		vary    string
	}{
		{"off", nil, []string{app}, "", false, ""},
		{"named", []string{"https://other.example", app}, []string{app}, app, true, "Origin"},
		{"of another site", []string{app}, []string{"https://evil.example"}, "", false, "Origin"},
		{"of no site", []string{app}, nil, "", false, "Origin"},
		{"a name that ends alike", []string{app}, []string{"https://evil-app.example.com"}, "", false, "Origin"},
		{"null", []string{app}, []string{"null"}, "", false, "Origin"},
		{"duplicate", []string{app}, []string{app, app}, "", false, "Origin"},
		{"all", []string{"*"}, []string{app}, "*", false, ""},
	} {
		limiter := newLimiter(t, storetest.NewModel(new(clock).instant), byAddress)
		handler := newMiddleware(t, limiter, httplimit.Config{CORSOrigins: tt.origins}).Wrap(ok)
		for i := range 3 {
			r := httptest.NewRequest("GET", "/", nil)
			r.Header["Origin"] = tt.sent
			w := serve(handler, r)
			h := w.Header()
			if i < 2 {
				if w.Code != 200 || h.Get("Access-Control-Allow-Origin") != "" || h.Get("Vary") != "" {
					t.Errorf("%s: got %d with %v, want 200 without fields of CORS", tt.what, w.Code, h)
				}
				continue
			}
			exposed := h.Get("Access-Control-Expose-Headers")
			if w.Code != 429 || h.Get("Access-Control-Allow-Origin") != tt.allow || h.Get("Vary") != tt.vary ||
				(h.Get("Access-Control-Allow-Credentials") == "true") != tt.cookies || strings.HasPrefix(exposed, "Retry-After, RateLimit,") != (tt.allow != "") {
				t.Errorf("%s: got %d with %v", tt.what, w.Code, h)
			}
			for name := range h {
				if lower := strings.ToLower(name); tt.allow != "" && (strings.Contains(lower, "ratelimit") || lower == "retry-after") && !strings.Contains(strings.ToLower(exposed), lower) {
					t.Errorf("%s: scripts cannot read %s", tt.what, name)
				}
			}
		}
	}
}

// A middleware for CORS in front decides alone: two values of its field are none to a browser.
func TestCORSOrigins_KeepsOuterFields(t *testing.T) {
	limiter := newLimiter(t, storetest.NewModel(new(clock).instant), `{"name": "none", "limit_keys": ["header:x"], "on_missing": "deny", "algorithm_config": {"rps": 1, "burst": 1}}`)
	limited := newMiddleware(t, limiter, httplimit.Config{CORSOrigins: []string{"*"}}).Wrap(ok)
	w := serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "https://app.example.com")
		limited.ServeHTTP(w, r)
	}), httptest.NewRequest("GET", "/", nil))
	if got := w.Header().Values("Access-Control-Allow-Origin"); w.Code != 403 || len(got) != 1 || got[0] != "https://app.example.com" {
		t.Errorf("got %d with origins %q, want 403 with the one in front", w.Code, got)
	}
}

func TestCORSOrigins_Refused(t *testing.T) {
	for _, tt := range []struct {
		origins []string
		want    string
	}{
		{[]string{"app.example.com"}, "write scheme and host"},
		{[]string{"https://app.example.com/"}, "write scheme and host"},
		{[]string{"https://App.example.com"}, "write scheme and host"},
		{[]string{"https://*.example.com"}, "write scheme and host"},
		{[]string{"null"}, `"null"`},
		{[]string{""}, "write scheme and host"},
		{[]string{"https://user@app.example.com"}, "write scheme and host"},
		{[]string{"*", "https://app.example.com"}, "remove the others"},
		{[]string{"https://a.example", "https://a.example"}, "duplicate"},
		{make([]string, 257), "at most 256"},
	} {
		limiter := newLimiter(t, storetest.NewModel(new(clock).instant), byAddress)
		if _, err := httplimit.New(limiter, httplimit.Config{CORSOrigins: tt.origins}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.60q: got error %v, want one with %q", tt.origins, err, tt.want)
		}
	}
}
