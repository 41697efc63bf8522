// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/storetest"
)

func TestRouting(t *testing.T) {
	api, _ := newAPI(t, perKey, httpapi.Config{Admin: true})
	for _, tt := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"GET", "/v1/take", 405, "POST"},
		{"OPTIONS", "/v1/peek", 405, "POST"},
		{"PUT", "/v1/refund", 405, "POST"},
		{"DELETE", "/v1/reset", 405, "POST"},
		{"POST", "/livez", 405, "GET, HEAD"},
		{"HEAD", "/readyz", 200, ""},
		{"GET", "/livez", 200, ""},
		{"POST", "/v1/takes", 404, ""},
		{"POST", "/v1/take/", 404, ""},
		{"GET", "/", 404, ""},
		{"GET", "/v1/decision", 404, ""},
	} {
		w := httptest.NewRecorder()
		api.ServeHTTP(w, httptest.NewRequest(tt.method, tt.path, nil))
		if w.Code != tt.status || w.Header().Get("Allow") != tt.allow {
			t.Errorf("%s %s: got %d with Allow %q, want %d with %q", tt.method, tt.path, w.Code, w.Header().Get("Allow"), tt.status, tt.allow)
		}
		if kind := w.Header().Get("Content-Type"); w.Code >= 400 && kind != "application/problem+json" {
			t.Errorf("%s %s: got %d as %q, want a problem", tt.method, tt.path, w.Code, kind)
		}
	}
}

func TestAdmin_IsByChoice(t *testing.T) {
	api, _ := newAPI(t, perKey, httpapi.Config{})
	spend := `{"attributes":{"header:x-api-key":"k1"},"cost":2}`
	if w := post(api, "/v1/take", spend); w.Code != 200 {
		t.Fatalf("take of all: got %d %s, want 200", w.Code, w.Body)
	}
	for _, path := range []string{"/v1/refund", "/v1/reset"} {
		w := post(api, path, spend)
		if w.Code != 404 || w.Header().Get("Content-Type") != "application/problem+json" || !strings.Contains(w.Body.String(), "admin address") {
			t.Errorf("POST %s without Admin: got %d %s, want a 404 that says so", path, w.Code, w.Body)
		}
		r := httptest.NewRequest(http.MethodGet, path, nil)
		w = httptest.NewRecorder()
		if api.ServeHTTP(w, r); w.Code != 404 {
			t.Errorf("GET %s without Admin: got %d %s, want 404", path, w.Code, w.Body)
		}
	}
	if w := post(api, "/v1/peek", k1); verdict(w) != denial {
		t.Errorf("peek afterwards: got %d %s, want nothing given back", w.Code, w.Body)
	}
}

func TestSenders(t *testing.T) {
	for _, tt := range []struct {
		header, value string
		status        int
	}{
		{"Content-Type", "application/json", 200},
		{"Content-Type", "application/json; charset=utf-8", 200},
		{"Content-Type", "application/json; charset=UTF-8", 200},
		{"Content-Type", "application/json; charset=latin1", 415},
		{"Content-Type", "application/json; charset=utf-16", 415},
		{"Content-Encoding", "gzip", 415},
		{"Content-Encoding", "identity", 200},
		{"Content-Encoding", "identity, gzip", 415},
		{"Content-Type", "Application/JSON", 200},
		{"Content-Type", "", 200},
		{"Content-Type", "application/x-www-form-urlencoded", 415},
		{"Content-Type", "text/plain", 415},
		{"Content-Type", "application/", 415},
		{"Sec-Fetch-Site", "cross-site", 403},
		{"Sec-Fetch-Site", "same-origin", 200},
		{"Origin", "https://elsewhere.example", 403},
	} {
		api, _ := newAPI(t, perKey, httpapi.Config{})
		r := httptest.NewRequest(http.MethodPost, "/v1/take", strings.NewReader(k1))
		if tt.value != "" {
			r.Header.Set(tt.header, tt.value)
		}
		w := httptest.NewRecorder()
		api.ServeHTTP(w, r)
		if w.Code != tt.status {
			t.Errorf("%s %q: got %d %s, want %d", tt.header, tt.value, w.Code, w.Body, tt.status)
		}
	}
}

func TestNew_RefusesBadConfig(t *testing.T) {
	lim := limiter(t, storetest.NewModel(newClock().read), perKey)
	if _, err := httpapi.New(nil, httpapi.Config{}); err == nil {
		t.Error("no limiter: got no error")
	}
	for want, config := range map[string]httpapi.Config{
		`"apache"`:        {Gateway: httpapi.Gateway{Profile: "apache", TrustedHops: 1}},
		"trusted proxies": {Gateway: httpapi.Gateway{Profile: httpapi.ProfileNGINX}},
		"hops":            {Gateway: httpapi.Gateway{Profile: httpapi.ProfileNGINX, TrustedHops: 99}},
		"draft-1":         {Gateway: httpapi.Gateway{Profile: httpapi.ProfileNGINX, TrustedHops: 1, Fields: []string{"draft-1"}}},
	} {
		if _, err := httpapi.New(lim, config); err == nil || !strings.HasPrefix(err.Error(), "httpapi: new: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got error %v, want one of httpapi about %s", config, err, want)
		}
	}
}

// errStopping is the reason of a server that stops.
var errStopping = errors.New("the server is stopping")

func TestHealth(t *testing.T) {
	get := func(api *httpapi.API, path string) (int, string) {
		w := httptest.NewRecorder()
		api.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code, strings.TrimSpace(w.Body.String())
	}
	const ok = `{"status":"ok"}`
	healthy, _ := newAPI(t, perKey, httpapi.Config{})
	broken := apiOver(t, brokenStore{}, perKey, httpapi.Config{})
	stopping, _ := newAPI(t, perKey, httpapi.Config{Ready: func(context.Context) error { return errStopping }})
	for _, tt := range []struct {
		name   string
		api    *httpapi.API
		path   string
		status int
		body   string
	}{
		{"healthy", healthy, "/livez", 200, ok},
		{"healthy", healthy, "/readyz", 200, ok},
		{"broken store", broken, "/livez", 200, ok},
		{"broken store", broken, "/readyz", 503, `{"status":"unavailable","reason":"the store does not answer"}`},
		{"stopping", stopping, "/livez", 200, ok},
		{"stopping", stopping, "/readyz", 503, `{"status":"unavailable","reason":"the server is stopping"}`},
	} {
		if status, body := get(tt.api, tt.path); status != tt.status || body != tt.body {
			t.Errorf("%s: GET %s: got %d %s, want %d %s", tt.name, tt.path, status, body, tt.status, tt.body)
		}
	}
}
