// SPDX-License-Identifier: Apache-2.0

package httplimit_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/storetest"
)

// Denied answers every kind of denial, with the fields set, and its status holds. Without a
// status of its own, the answer has the default status.
func TestDenied(t *testing.T) {
	byKey := httplimit.Limit{Name: "api", Rate: "1/1h", Burst: 1, Key: httplimit.ByHeader("X-API-Key", httplimit.MissingDeny)}
	for name, denied := range map[string]func(http.ResponseWriter, *http.Request, mete.Decision){
		"status and body": func(w http.ResponseWriter, r *http.Request, d mete.Decision) {
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(http.StatusTeapot)
			fmt.Fprintf(w, "%s %s %s", d.Rule, d.Reason, r.URL.Path)
		},
		"body": func(w http.ResponseWriter, r *http.Request, d mete.Decision) {
			fmt.Fprintf(w, "%s %s %s", d.Rule, d.Reason, r.URL.Path)
		},
		"flush": func(w http.ResponseWriter, r *http.Request, d mete.Decision) {
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
			fmt.Fprintf(w, "%s %s %s", d.Rule, d.Reason, r.URL.Path)
		},
		"hint first": func(w http.ResponseWriter, r *http.Request, d mete.Decision) {
			w.WriteHeader(http.StatusEarlyHints)
			fmt.Fprintf(w, "%s %s %s", d.Rule, d.Reason, r.URL.Path)
		},
		"nothing": func(http.ResponseWriter, *http.Request, mete.Decision) {},
	} {
		config := httplimit.Config{Denied: denied, CORSOrigins: []string{"*"}, DisableJitter: true}
		server := httptest.NewServer(routeOf(t, withoutPolicy(t), config, byKey))
		broken := httptest.NewServer(newMiddleware(t, newLimiter(t, brokenStore{}, `{"name": "closed", "limit_keys": [], "on_store_error": "closed", "algorithm_config": {"rps": 1, "burst": 1}}`), config).Wrap(ok))
		for _, tt := range []struct {
			server *httptest.Server
			key    string
			status int
			retry  string
			body   string
		}{
			{server, "k1", 200, "", "hello"},
			{server, "k1", 429, "3600", "api token_bucket_exceeded /x"},
			{server, "", 403, "", "api missing_attribute /x"},
			{broken, "k1", 503, "1", "closed store_error /x"},
		} {
			r, err := http.NewRequest("GET", tt.server.URL+"/x", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("X-API-Key", tt.key)
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(res.Body)
			res.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			want := tt.status
			if name == "status and body" && want != 200 {
				want = http.StatusTeapot
			}
			if name == "nothing" && want != 200 {
				tt.body = ""
			}
			if res.StatusCode != want || strings.TrimSpace(string(body)) != tt.body || res.Header.Get("Retry-After") != tt.retry {
				t.Errorf("%s: got %d, Retry-After %q, %q; want %d, %q, %q", name, res.StatusCode, res.Header.Get("Retry-After"), body, want, tt.retry, tt.body)
			}
			denial := tt.status != 200
			if h := res.Header; (h.Get("Access-Control-Allow-Origin") != "") != denial || (h.Get("X-RateLimit-Reason") != "") != denial || (h.Get("Cache-Control") == "no-store") != denial ||
				(h.Get("RateLimit") != "") != (tt.status == 200 || tt.status == 429) {
				t.Errorf("%s: status %d has the header %v", name, tt.status, h)
			}
		}
		server.Close()
		broken.Close()
	}
}

// A request that servers read differently keeps its 400: no limit denies it.
func TestDenied_NotForAmbiguousRequests(t *testing.T) {
	config := httplimit.Config{Denied: func(http.ResponseWriter, *http.Request, mete.Decision) { t.Error("Denied is called") }}
	handler := routeOf(t, withoutPolicy(t), config, httplimit.Limit{Name: "api", Rate: "1/1h", Burst: 1, Key: httplimit.ByHeader("X-API-Key", httplimit.MissingDeny)})
	r := httptest.NewRequest("GET", "/", nil)
	r.Header["X-Api-Key"] = []string{"a", "b"}
	if w := serve(handler, r); w.Code != http.StatusBadRequest {
		t.Errorf("got %d, want 400", w.Code)
	}
}

// Exempt requests pass, cost nothing, have no fields, and no hook sees them.
func TestExempt(t *testing.T) {
	decisions := 0
	config := httplimit.Config{
		Exempt:     func(r *http.Request) bool { return r.URL.Path == "/healthz" },
		OnDecision: func(context.Context, *mete.Decision) { decisions++ },
	}
	limiter := newLimiter(t, storetest.NewModel(new(clock).instant), byAddress)
	handler := newMiddleware(t, limiter, config).Wrap(ok)
	for i, tt := range []struct {
		path string
		want int
	}{{"/healthz", 200}, {"/healthz", 200}, {"/healthz", 200}, {"/", 200}, {"/", 200}, {"/", 429}, {"/healthz", 200}} {
		w := serve(handler, httptest.NewRequest("GET", tt.path, nil))
		if limited := w.Header().Get("RateLimit") != ""; w.Code != tt.want || limited != (tt.path == "/") {
			t.Errorf("request %d to %s: got %d with RateLimit %v, want %d", i, tt.path, w.Code, limited, tt.want)
		}
	}
	if decisions != 3 {
		t.Errorf("the hook saw %d decisions, want 3", decisions)
	}
}

// Admit sets the fields of a request that may go on, and answers one that may not.
func TestAdmit(t *testing.T) {
	m := httplimit.PerAddress("1/1h", 1)
	for i, want := range []bool{true, false} {
		w := httptest.NewRecorder()
		if _, got := m.Admit(w, httptest.NewRequest("GET", "/", nil)); got != want || (w.Code == http.StatusTooManyRequests) == want || w.Header().Get("RateLimit") == "" {
			t.Errorf("request %d: got %v with status %d and %v, want %v", i, got, w.Code, w.Header(), want)
		}
	}
}
