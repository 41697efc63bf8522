// SPDX-License-Identifier: Apache-2.0

package httplimit_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/memstore"
)

// denying has a rule for each path, with this denial.
func denying(t *testing.T, denial string) *mete.Limiter {
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return newLimiter(t, store, `{"name": "r", "limit_keys": ["header:x-key"], "on_missing": "deny", "rate": "1/1h", "burst": 2, "fixed_cost": 2, "denial": `+denial+`}`)
}

func TestDenial(t *testing.T) {
	const message = `Limit \"r\" is exceeded. Try again in 7200 seconds.`
	for _, tt := range []struct {
		denial, method string
		status         int
		contentType    string
		body           string
	}{
		{`{"format": "openai"}`, "GET", 429, "application/json", `{"error":{"message":"` + message + `","type":"rate_limit_error","param":null,"code":"rate_limit_exceeded"}}`},
		{`{"format": "anthropic", "status": 529}`, "GET", 529, "application/json", `{"type":"error","error":{"type":"rate_limit_error","message":"` + message + `"}}`},
		{`{"format": "gemini"}`, "POST", 429, "application/json", `{"error":{"code":429,"message":"` + message + `","status":"RESOURCE_EXHAUSTED","details":[` +
			`{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"7200s"}]}}`},
		{`{"body": "{{rule}}: {{remaining}} of {{limit}} left, {{status}} for {{retry_after}} s: {{reason}}", "status": 403}`, "GET", 403, "text/plain; charset=utf-8",
			"r: 0 of 2 left, 403 for 7200 s: token_bucket_exceeded"},
		{`{"body": "<b>{{rule}}</b>", "content_type": "text/html"}`, "HEAD", 429, "text/html", ""},
	} {
		lim := denying(t, tt.denial)
		handler := newMiddleware(t, lim, httplimit.Config{DisableJitter: true}).Wrap(ok)
		var w *httptest.ResponseRecorder
		for range 2 {
			r := httptest.NewRequest(tt.method, "/", nil)
			r.Header.Set("X-Key", "k")
			w = serve(handler, r)
		}
		h := w.Header()
		if w.Code != tt.status || h.Get("Content-Type") != tt.contentType || w.Body.String() != tt.body ||
			h.Get("Retry-After") != "7200" || h.Get("Cache-Control") != "no-store" || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: got %d %v %s, want %d %s", tt.denial, w.Code, h, w.Body, tt.status, tt.body)
		}
	}
}

// A status alone keeps the problem, and other denials keep their own statuses.
func TestDenial_Problem(t *testing.T) {
	handler := newMiddleware(t, denying(t, `{"status": 503}`), httplimit.Config{DisableJitter: true}).Wrap(ok)
	for _, want := range []struct {
		key    string
		status int
	}{{"k", 200}, {"k", 503}, {"", 403}} {
		r := httptest.NewRequest("GET", "/", nil)
		if want.key != "" {
			r.Header.Set("X-Key", want.key)
		}
		w := serve(handler, r)
		if w.Code != want.status || want.status != 200 && w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("key %q: got %d %v, want %d", want.key, w.Code, w.Header(), want.status)
		}
	}
}

// Config.Denied replaces the body of the policy, and its default status is the status of the policy.
func TestDenial_Denied(t *testing.T) {
	denied := func(w http.ResponseWriter, _ *http.Request, _ mete.Decision) { w.Write([]byte("mine")) }
	handler := newMiddleware(t, denying(t, `{"status": 420, "body": "theirs"}`), httplimit.Config{Denied: denied}).Wrap(ok)
	var w *httptest.ResponseRecorder
	for range 2 {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("X-Key", "k")
		w = serve(handler, r)
	}
	if w.Code != 420 || w.Body.String() != "mine" {
		t.Errorf("got %d %s, want 420 mine", w.Code, w.Body)
	}
}
