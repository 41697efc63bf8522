// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metehq/mete/cmd/internal/config"
)

// as sends a request with a token, none where it is empty, and returns the status.
func (r *running) as(token, method, path, body string) (status int, answer string) {
	r.t.Helper()
	req, err := http.NewRequest(method, r.admin+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header["Authorization"] = []string{} // there, so that the default client adds none
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

const (
	readerToken   = "reader-0123456789abcdef"
	operatorToken = "operator-0123456789abcdef"
	ownerToken    = "owner-0123456789abcdef"
)

func withTokens() config.Config {
	c := testConfig()
	c.AdminTokens = []config.AdminToken{
		{Name: "grafana", Role: "read", Token: readerToken},
		{Name: "on-call", Role: "operate", Token: operatorToken},
		{Name: "deploy", Role: "configure", Token: ownerToken},
	}
	return c
}

// Every endpoint of the admin address, and what it answers to each role.
func TestAccess_Roles(t *testing.T) {
	const (
		request = `{"attributes":{"header:x-api-key":"k1"}}`
		block   = `{"id":"b","action":"block","match":{"header:x-api-key":"zz"},"reason":"r","author":"a","expires_at":"2099-01-01T00:00:00Z"}`
		breaker = `{"id":"g","action":"break_glass","reason":"r","author":"a","expires_at":"2099-01-01T00:00:00Z"}`
	)
	s := start(t, withTokens())
	for _, test := range []struct {
		method, path, body string
		want               [4]int // of nobody, read, operate, configure
	}{
		{"GET", "/livez", "", [4]int{200, 200, 200, 200}},
		{"GET", "/readyz", "", [4]int{200, 200, 200, 200}},
		{"GET", "/metrics", "", [4]int{401, 200, 200, 200}},
		{"POST", "/v1/peek", request, [4]int{401, 200, 200, 200}},
		{"POST", "/v1/explain", request, [4]int{401, 200, 200, 200}},
		{"GET", "/v1/overrides", "", [4]int{401, 200, 200, 200}},
		{"POST", "/v1/take", request, [4]int{401, 403, 200, 200}},
		{"POST", "/v1/refund", request, [4]int{401, 403, 200, 200}},
		{"POST", "/v1/reset", request, [4]int{401, 403, 200, 200}},
		{"PUT", "/v1/overrides", block, [4]int{401, 403, 200, 200}},
		{"PUT", "/v1/overrides", breaker, [4]int{401, 403, 403, 200}},
		{"DELETE", "/v1/overrides/b?author=a&reason=r", "", [4]int{401, 403, 200, 404}},
		{"DELETE", "/v1/overrides/g?author=a&reason=r", "", [4]int{401, 403, 403, 200}},
		{"POST", "/v1/reload", "", [4]int{401, 403, 403, 200}},
		{"GET", "/v1/decision", "", [4]int{404, 404, 404, 404}},
	} {
		for i, token := range []string{"", readerToken, operatorToken, ownerToken} {
			if got, answer := s.as(token, test.method, test.path, test.body); got != test.want[i] {
				t.Errorf("%s %s as %q: %d %s, want %d", test.method, test.path, token, got, answer, test.want[i])
			}
		}
	}
	// Who changed something is in the log; what opens the door is not.
	log := s.log.String()
	for _, want := range []string{
		`what=reset by=on-call role=operate from=127.0.0.1 status=200`, `what=reset by="" role=none from=127.0.0.1 status=401`,
		`what="overrides PUT" by=deploy role=configure`, `what="overrides DELETE" by=on-call role=operate`, `what=reload by=grafana role=read from=127.0.0.1 status=403`,
	} {
		if !strings.Contains(log, want) {
			t.Errorf("the log has no %s:\n%s", want, log)
		}
	}
	for _, secret := range []string{readerToken, operatorToken, ownerToken} {
		if strings.Contains(log, secret) {
			t.Errorf("the log has the token %s", secret)
		}
	}
}

// What is no token is nobody's, whatever it looks like, and is limited by itself.
func TestAccess_WrongTokens(t *testing.T) {
	s := start(t, withTokens())
	limited := false
	for i := range 30 {
		wrong := []string{ownerToken[1:], ownerToken + "x", strings.ToUpper(ownerToken), "x" + fmt.Sprint(i)}[i%4]
		switch got, answer := s.as(wrong, "POST", "/v1/reload", ""); got {
		case http.StatusUnauthorized:
			if !strings.Contains(answer, "nobody has this token") {
				t.Errorf("answer %s", answer)
			}
		case http.StatusTooManyRequests:
			limited = true
		default:
			t.Errorf("%q: %d %s, want 401 or 429", wrong, got, answer)
		}
	}
	if !limited {
		t.Error("30 wrong tokens in a row were not limited")
	}
	if got, answer := s.as(ownerToken, "POST", "/v1/reload", ""); got != http.StatusOK {
		t.Errorf("the right one among wrong ones: %d %s, want 200", got, answer)
	}
}

// Two fields, or another scheme, are not understood rather than ignored.
func TestAccess_Malformed(t *testing.T) {
	s := start(t, withTokens())
	for _, sent := range [][]string{{"Bearer " + ownerToken, "Bearer " + ownerToken}, {"Basic " + ownerToken}, {ownerToken}, {"Bearer"}, {"Bearer " + strings.Repeat("x", 4<<10)}} {
		req, err := http.NewRequest("GET", s.admin+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header["Authorization"] = sent
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("%.40q: %d, want 401", sent, resp.StatusCode)
		}
	}
}

func TestAccess_PublicMetrics(t *testing.T) {
	c := withTokens()
	c.PublicMetrics = true
	s := start(t, c)
	if got, answer := s.as("", "GET", "/metrics", ""); got != http.StatusOK {
		t.Errorf("%d %s, want 200", got, answer)
	}
	if got, _ := s.as("", "GET", "/v1/overrides", ""); got != http.StatusUnauthorized {
		t.Errorf("overrides: %d, want 401", got)
	}
}

// Without tokens in the settings there is one for who runs the server, in a file that
// only they can read; it goes with the server.
func TestAccess_MadeToken(t *testing.T) {
	s := start(t, testConfig())
	file := s.server.TokenFile()
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o600 {
		t.Errorf("mode %o, want 600", mode)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	token := strings.TrimSpace(string(text))
	for _, test := range []struct {
		token, path string
		want        int
	}{{"", "/v1/peek", 200}, {"", "/v1/explain", 200}, {"", "/v1/reset", 401}, {"", "/v1/reload", 401}, {token, "/v1/reset", 200}, {token, "/v1/reload", 200}} {
		body := `{"attributes":{}}`
		if test.path == "/v1/reload" {
			body = ""
		}
		if got, answer := s.as(test.token, "POST", test.path, body); got != test.want {
			t.Errorf("%s with token %v: %d %s, want %d", test.path, test.token != "", got, answer, test.want)
		}
	}
	s.stop()
	s.wait()
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the file is still there: %v", err)
	}
	if strings.Contains(s.log.String(), token) {
		t.Error("the log has the token")
	}
}

// Where it cannot be left, the server runs, and nobody can change anything.
func TestAccess_NoPlaceForTheToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_RUNTIME_DIR", file)
	s := start(t, testConfig())
	if got, _ := s.as("", "POST", "/v1/reset", `{"attributes":{}}`); got != http.StatusUnauthorized {
		t.Errorf("reset: %d, want 401", got)
	}
	if got, _ := s.as("", "POST", "/v1/peek", `{"attributes":{}}`); got != http.StatusOK {
		t.Errorf("peek: %d, want 200", got)
	}
	if !strings.Contains(s.log.String(), "nobody can change anything at the admin address") {
		t.Errorf("the log does not say so:\n%s", s.log)
	}
}
