// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/cmd/internal/cli"
)

// TestTake_SaysWhatTheServerSaid has a server give canned answers.
func TestTake_SaysWhatTheServerSaid(t *testing.T) {
	const problem = "application/problem+json"
	tests := []struct {
		status       int
		media, body  string
		code         int
		stdout, errs string
	}{
		{200, "application/json", `{"allowed":true,"rule":"a","limits":[{"rule":"a","limit":"a","remaining":7,"full_after":0}]}`,
			0, "allowed\n  a  7 left, full\n", ""},
		{200, "application/json", `{"allowed":true,"rule":"a","limits":[{"rule":"a","limit":"a/x","remaining":7,"full_after":null},{"rule":"a","limit":"a/second","remaining":0,"full_after":0.000001}]}`,
			0, "allowed\n  a/x       7 left\n  a/second  0 left, full again in 1µs\n", ""},
		{200, "application/json", `{"allowed":true,"rule":"a","wait":0.0015,"limits":[{"rule":"a","limit":"a","remaining":0,"full_after":3}]}`,
			0, "allowed in 1.5ms\n  a  0 left, full again in 3s\n", ""},
		{200, "application/json", `{"allowed":true,"rule":"a","degraded":true,"limits":[]}`,
			0, "allowed (degraded: the store could not answer)\n", ""},
		{429, "application/json", `{"allowed":false,"rule":"a","reason":"r","retry_after":0.0999001,"limits":[]}`,
			2, "", "could not decide: the response cannot be parsed"},
		{429, "application/json", `{"allowed":false,"rule":"a","reason":"r","retry_after":0.999001,"limits":[]}`,
			1, "denied by a: r; try again in 1s\n", ""},
		{429, "application/json", `{"allowed":false,"rule":"a","reason":"r","retry_after":null,"limits":[]}`,
			1, "denied by a: r; it can never be allowed\n", ""},
		{200, "application/json", `{"allowed":false,"rule":"a","reason":"r","retry_after":0.999001,"limits":[]}`,
			1, "denied by a: r; try again in 1s\n", ""},
		{200, "application/json", `{"allowed":false,"rule":"a","reason":"r","retry_after":null,"limits":[]}`,
			1, "denied by a: r; it can never be allowed\n", ""},
		{200, "application/json", `{"allowed":false,"rule":"a","reason":"store_error","retry_after":1,"degraded":true,"failure":"timeout","limits":[]}`,
			3, "denied by a: store_error; try again in 1s (degraded: the store could not answer: timeout)\n", ""},
		{503, "application/json", `{"allowed":false,"rule":"a","reason":"store_error","retry_after":0,"degraded":true,"limits":[]}`,
			3, "denied by a: store_error (degraded: the store could not answer)\n", ""},
		{503, "application/json", `{"allowed":false,"rule":"a","reason":"store_error","retry_after":1,"degraded":true,"failure":"timeout","limits":[]}`,
			3, "denied by a: store_error; try again in 1s (degraded: the store could not answer: timeout)\n", ""},
		{200, "application/json", `{"allowed":true,"rule":"a","wait":0.5,"limits":[{"rule":"a","limit":"a","remaining":0,"owed":12.5,"full_after":3}]}`,
			0, "allowed in 500ms\n  a  0 left, 12.5 owed, full again in 3s\n", ""},
		{200, "application/json", `{"allowed":true,"rule":"a","limits":[],"unknown_attributes":["header:x_api_key","jwt:\u001b[31m"]}`,
			0, "allowed: no rule applies, except in shadow mode\n", "warning: no rule, override or cost reads header:x_api_key, jwt:\\u001b[31m; check the names\n"},
		{200, "application/json", `{"allowed":true,"rule":"","limits":[]}`, 0, "allowed: no rule applies, except in shadow mode\n", ""},
		{400, problem, `{"title":"Bad Request","status":400,"detail":"the cost is odd"}`, 4, "", "could not decide: the cost is odd"},
		{503, problem, `{"title":"Service Unavailable","status":503}`, 3, "", "503 Service Unavailable"},
		{200, "text/html", `<p>welcome`, 2, "", "not a mete server"},
		{200, "application/json", `{}`, 2, "", "not a decision"},
	}
	for _, tt := range tests {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", tt.media)
			w.WriteHeader(tt.status)
			io.WriteString(w, tt.body)
		}))
		stdout, stderr, code := run(t, "take", "--server", s.URL, "path=/")
		s.Close()
		if code != tt.code || stdout != tt.stdout {
			t.Errorf("answer %d %s: code %d, stdout\n%s\nwant code %d,\n%s", tt.status, tt.body, code, stdout, tt.code, tt.stdout)
		}
		if !strings.Contains(stderr, tt.errs) || tt.errs == "" && stderr != "" {
			t.Errorf("answer %d %s: stderr %q, want %q in it", tt.status, tt.body, stderr, tt.errs)
		}
	}
}

// answering is a server that allows everything after a wait of so many seconds.
func answering(t *testing.T, wait string) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"allowed":true,"rule":"a","wait":`+wait+`,"limits":[{"rule":"a","limit":"a","remaining":0,"full_after":null}]}`)
	}))
	t.Cleanup(s.Close)
	return s
}

// What follows "mete take … &&" must not begin before its tokens are there.
func TestTake_WaitsForTheTokens(t *testing.T) {
	const wait = 20 * time.Millisecond
	for _, format := range []string{"text", "json"} {
		start := time.Now()
		stdout, stderr, code := run(t, "take", "--server", answering(t, "0.02").URL, "--max-wait", "1s", "--format", format)
		if waited := time.Since(start); code != 0 || stdout == "" || stderr != "" || waited < wait {
			t.Errorf("%s: code %d after %v, stdout %q, stderr %q; want 0 after %v", format, code, waited, stdout, stderr, wait)
		}
	}
}

// endOnWrite ends a context when something is printed.
type endOnWrite struct {
	strings.Builder
	end context.CancelFunc
}

func (w *endOnWrite) Write(p []byte) (int, error) {
	w.end()
	return w.Builder.Write(p)
}

func TestTake_InterruptedWait(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	out, errs := endOnWrite{end: cancel}, strings.Builder{}
	code := cli.Main(ctx, []string{"take", "--max-wait", "1d", "--server", answering(t, "3600").URL}, cli.Streams{Out: &out, Err: &errs})
	if code != 2 || out.String() != "allowed in 1h\n  a  0 left\n" || !strings.Contains(errs.String(), "interrupted before the tokens were there") {
		t.Errorf("code %d, stdout %q, stderr %q; want 2 and the reason", code, out.String(), errs.String())
	}
}

// A peek has spent nothing, so there is nothing to wait for.
func TestPeek_DoesNotWait(t *testing.T) {
	stdout, stderr, code := run(t, "peek", "--max-wait", "1d", "--server", answering(t, "3600").URL)
	if code != 0 || stdout != "allowed in 1h\n  a  0 left\n" || stderr != "" {
		t.Errorf("code %d, stdout %q, stderr %q; want 0, allowed in 1h", code, stdout, stderr)
	}
}

func TestTake_AsksWhatItWasTold(t *testing.T) {
	asked := make(chan string, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		asked <- fmt.Sprintf("%s %s %s %v", r.Method, r.URL.Path, body, err)
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"allowed":true}`)
	}))
	defer s.Close()
	tests := []struct{ args, want string }{
		{"take", `POST /v1/take {"attributes":{}} <nil>`},
		{"peek HEADER:X-Api-Key=k=1 path= --cost 0.25", `POST /v1/peek {"attributes":{"header:x-api-key":"k=1","path":""},"cost":0.25} <nil>`},
		{"take --id 7f3a", `POST /v1/take {"attributes":{},"id":"7f3a"} <nil>`},
		{"take --max-wait 1d -- method=GET", `POST /v1/take {"attributes":{"method":"GET"},"max_wait":"24h0m0s"} <nil>`},
	}
	for _, tt := range tests {
		args := strings.Fields(tt.args)
		args = append([]string{args[0], "--server", s.URL}, args[1:]...)
		if _, stderr, code := run(t, args...); code != 0 {
			t.Errorf("mete %s: code %d, stderr %q", tt.args, code, stderr)
			continue
		}
		if got := <-asked; got != tt.want {
			t.Errorf("mete %s asked\n%s\nwant\n%s", tt.args, got, tt.want)
		}
	}
}
