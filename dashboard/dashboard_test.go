// SPDX-License-Identifier: Apache-2.0

package dashboard_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/metehq/mete/dashboard"
	"github.com/metehq/mete/policy"
)

func TestNew_Refuses(t *testing.T) {
	if _, err := dashboard.New(dashboard.Config{API: "api"}); err == nil || !strings.Contains(err.Error(), "end with a slash") {
		t.Errorf("%v", err)
	}
}

// The page says where the API is.
func TestNew_API(t *testing.T) {
	for api, want := range map[string]string{
		"": `content="../"`, "../": `content="../"`, "/api/": `content="/api/"`, `"><script>/`: `content="&#34;&gt;&lt;script&gt;/"`,
	} {
		page := ask(newPages(t, api), "GET", "/").Body.String()
		if !strings.Contains(page, `<meta name="mete-api" `+want+">") {
			t.Errorf("%s: want %s in\n%s", api, want, page)
		}
	}
}

func newPages(t *testing.T, api string) *dashboard.Handler {
	t.Helper()
	h, err := dashboard.New(dashboard.Config{API: api})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// ask sends a request and returns the answer.
func ask(h http.Handler, method, target string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// Every answer, files and errors included, says what a page may load: what is served
// here and nothing else.
func TestHandler_Headers(t *testing.T) {
	h := newPages(t, "")
	for target, status := range map[string]int{"/": 200, "/index.html": 200, "/app.js": 200, "/ui/base.css": 200, "/none.js": 404, "/data/me": 404, "/../dashboard.go": 404} {
		w := ask(h, "GET", target)
		if w.Code != status {
			t.Errorf("%s: status %d, want %d", target, w.Code, status)
		}
		csp := w.Header().Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "script-src 'self';", "style-src 'self';", "frame-ancestors 'none'", "require-trusted-types-for 'script'"} {
			if !strings.Contains(csp, part) {
				t.Errorf("%s: the policy %q lacks %s", target, csp, part)
			}
		}
		if strings.Contains(csp, "unsafe") || w.Header().Get("X-Content-Type-Options") != "nosniff" || w.Header().Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: headers %v", target, w.Header())
		}
	}
}

// Files are revalidated each time, and sent once.
func TestHandler_Files(t *testing.T) {
	h := newPages(t, "")
	plain := ask(h, "GET", "/")
	zipped := ask(h, "GET", "/", "Accept-Encoding", "gzip")
	r, err := gzip.NewReader(zipped.Body)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(text, plain.Body.Bytes()) || len(text) == 0 {
		t.Errorf("compressed, the page is another one: %v", err)
	}
	if got := plain.Header().Get("Content-Type"); got != "text/html; charset=utf-8" {
		t.Errorf("content type %q", got)
	}
	if got := plain.Header().Get("Cache-Control"); got != "no-cache" {
		t.Errorf("cache control %q", got)
	}
	tag := zipped.Header().Get("Etag")
	again := ask(h, "GET", "/", "Accept-Encoding", "gzip", "If-None-Match", tag)
	if again.Code != http.StatusNotModified || tag == plain.Header().Get("Etag") {
		t.Errorf("status %d of what is known as %s, want 304", again.Code, tag)
	}
	if w := ask(h, "POST", "/"); w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") == "" {
		t.Errorf("status %d of a POST, want 405", w.Code)
	}
}

// Data is for who may look, from pages of the same origin.
func TestHandler_Data(t *testing.T) {
	h := newBoard(t, dashboard.Config{API: "/api/", SignIn: "ask Kim", Top: true})
	w := ask(h, "", "GET", "/data/me", "")
	if w.Code != 401 || w.Header().Get("Www-Authenticate") == "" || !strings.Contains(w.Body.String(), "role read. ask Kim") {
		t.Errorf("status %d for nobody, %v: %s", w.Code, w.Header(), w.Body)
	}
	w = ask(h, "r", "GET", "/data/me", "")
	actions, _ := json.Marshal(policy.Actions())
	algorithms, _ := json.Marshal(policy.Algorithms())
	want := `{"name":"reader","role":"read","see_keys":false,"sign_in":"ask Kim","version":"","started":"0001-01-01T00:00:00Z","instance":"one","api":"/api/",` +
		`"features":{"top":true,"overrides":false,"violations":false},"actions":` + string(actions) +
		`,"algorithms":` + string(algorithms) + `,"reasons":["token_bucket_exceeded","fixed_window_exceeded","sliding_window_exceeded",` +
		`"sliding_log_exceeded","leaky_bucket_exceeded","budget_exceeded","missing_attribute","blocked"]}`
	if got := strings.TrimSpace(w.Body.String()); got != want || w.Code != 200 || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("got %s, want %s", got, want)
	}
	if w := ask(h, "r", "DELETE", "/data/me", ""); w.Code != 405 || w.Header().Get("Allow") != "GET" {
		t.Errorf("status %d of DELETE, want 405", w.Code)
	}
	if w := ask(h, "r", "POST", "/data/play", "{}", "Sec-Fetch-Site", "cross-site"); w.Code != 403 {
		t.Errorf("status %d for a page of another origin, want 403", w.Code)
	}
}
