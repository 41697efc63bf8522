// SPDX-License-Identifier: Apache-2.0

package dashboard_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/metehq/mete/dashboard"
)

func TestNew_Refuses(t *testing.T) {
	if _, err := dashboard.New(dashboard.Config{API: "api"}); err == nil || !strings.Contains(err.Error(), "end with a slash") {
		t.Errorf("%v", err)
	}
}

// index.html contains the URL of the API.
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

// Every response, including errors, has a security policy that permits only files of this origin.
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

// Browsers revalidate files, and unchanged files are not sent again.
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
