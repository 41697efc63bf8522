// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHealth(t *testing.T) {
	const stopping = `{"status":"unavailable","reason":"the server is stopping"}`
	for _, tt := range []struct {
		flags        []string
		path         string
		status       int
		body         string
		code         int
		stdout, errs string
	}{
		{nil, "/readyz", 200, `{"status":"ok"}`, 0, "ok\n", ""},
		{[]string{"--live"}, "/livez", 200, `{"status":"ok"}`, 0, "ok\n", ""},
		{nil, "/readyz", 503, stopping, 1, "the server is stopping\n", ""},
		{nil, "/readyz", 503, "\x1b[2J", 1, "not available\n", ""},
		{nil, "/readyz", 503, `{"reason":"\u001b[2J"}`, 1, "\\u001b[2J\n", ""},
		{nil, "/readyz", 404, "", 2, "", "status 404"},
		{[]string{"now"}, "", 0, "", 2, "", `unexpected argument "now"`},
		{[]string{"--ca", "missing.pem"}, "", 0, "", 2, "", "missing.pem"},
		{[]string{"--server", "http://a b"}, "", 0, "", 2, "", "--server: cannot parse the server URL"},
		{[]string{"--server", "127.0.0.1:8080"}, "", 0, "", 2, "", "use a URL such as http://127.0.0.1:8080"},
	} {
		var asked string
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked = r.URL.Path
			w.WriteHeader(tt.status)
			fmt.Fprint(w, tt.body)
		}))
		stdout, stderr, code := run(t, append([]string{"health", "--server", s.URL + "/"}, tt.flags...)...)
		s.Close()
		if code != tt.code || stdout != tt.stdout || !strings.Contains(stderr, tt.errs) || asked != tt.path {
			t.Errorf("health %q, answered %d %q: code %d, stdout %q, stderr %q, asked for %q; want code %d, %q, %q, %q",
				tt.flags, tt.status, tt.body, code, stdout, stderr, asked, tt.code, tt.stdout, tt.errs, tt.path)
		}
	}
}

// A password in the URL of a server is in no message.
func TestServer_HidesPasswords(t *testing.T) {
	for _, server := range []string{"http://u:sekret@127.0.0.1:1", "http://u:sek ret@127.0.0.1:1", "http://u:sekret%zz@127.0.0.1:1"} {
		for _, args := range [][]string{{"health"}, {"reload"}, {"top"}, {"peek", "path=/"}, {"reset", "path=/"}, {"override", "list"}} {
			stdout, stderr, code := run(t, append(args, "--server", server)...)
			if code == 0 || strings.Contains(stdout+stderr, "sek") {
				t.Errorf("%q --server %s: code %d, %s%s; want an error without the password", args, server, code, stdout, stderr)
			}
		}
	}
}

func TestHealth_NobodyThere(t *testing.T) {
	s := httptest.NewServer(nil)
	s.Close()
	if stdout, stderr, code := run(t, "health", "--server", s.URL); code != 3 || stdout != "" || !strings.Contains(stderr, s.URL+" does not answer: ") || !strings.Contains(stderr, "; start it with 'mete serve'") {
		t.Errorf("no server: code %d, stdout %q, stderr %q, want code 3 and why", code, stdout, stderr)
	}
}
