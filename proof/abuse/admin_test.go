// SPDX-License-Identifier: Apache-2.0

package abuse_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metehq/mete/proof/meted"
)

const (
	readToken      = "read-token-0123456789abcdef"
	operateToken   = "operate-token-0123456789abcdef"
	configureToken = "configure-token-0123456789abcdef"
)

const threeRoles = `admin_tokens:
  - {name: looker, role: read, token: ` + readToken + `}
  - {name: operator, role: operate, token: ` + operateToken + `}
  - {name: chief, role: configure, token: ` + configureToken + `}
`

// An adminCall is a request to the admin address with the role that it needs.
type adminCall struct {
	method, path, body string
	need               int // 0 none, 1 read, 2 operate, 3 configure
}

var adminCalls = []adminCall{
	{"GET", "/livez", "", 0}, {"GET", "/readyz", "", 0},
	{"GET", "/metrics", "", 1}, {"GET", "/v1/overrides", "", 1}, {"GET", "/v1/top", "", 1},
	{"POST", "/v1/explain", `{"attributes":{"ip:address":"192.0.2.1"}}`, 1}, {"POST", "/v1/peek", `{"attributes":{"ip:address":"192.0.2.1"}}`, 1},
	{"POST", "/v1/take", `{"attributes":{"ip:address":"192.0.2.2"}}`, 2},
	{"POST", "/v1/refund", `{"attributes":{"ip:address":"192.0.2.2"}}`, 2}, {"POST", "/v1/reset", `{"attributes":{"ip:address":"192.0.2.2"}}`, 2},
	{"PUT", "/v1/overrides", `{"id":"one","action":"block","match":{"ip:address":"192.0.2.9"},"reason":"r","author":"a","expires_at":"2099-01-01T00:00:00Z"}`, 2},
	{"DELETE", "/v1/overrides/one?author=a&reason=r", "", 2},
	{"PUT", "/v1/overrides", `{"id":"wide","action":"allow","match":{"path":"/*"},"reason":"r","author":"a","expires_at":"2099-01-01T00:00:00Z"}`, 3},
	{"PUT", "/v1/overrides", `{"id":"all","action":"break_glass","reason":"r","author":"a","expires_at":"2099-01-01T00:00:00Z"}`, 3},
	{"POST", "/v1/reload", "", 3},
}

// Clients without a token, or with an insufficient role, change nothing.
func TestAbuse_AdminRoles(t *testing.T) {
	t.Parallel()
	s := start(t, perAddress("100"), threeRoles)
	for role, fields := range [][]string{{}, bearer(readToken), bearer(operateToken), bearer(configureToken)} {
		for _, c := range adminCalls {
			got := ask(t, c.method, s.AdminURL+c.path, c.body, fields...)
			refused := got.status == http.StatusUnauthorized || got.status == http.StatusForbidden
			if role < c.need && !refused {
				t.Errorf("role %d: %s %s: %d %s, want 401 or 403", role, c.method, c.path, got.status, got.body)
			}
			if role >= c.need && refused {
				t.Errorf("role %d: %s %s: %d %s, want to be let in", role, c.method, c.path, got.status, got.body)
			}
		}
	}
	for _, token := range []string{readToken, operateToken, configureToken} {
		if strings.Contains(s.Log(), token) {
			t.Errorf("a token is in the log:\n%s", s.Log())
		}
	}
	if !strings.Contains(s.Log(), "by=chief") {
		t.Errorf("the log does not say who changed something:\n%s", s.Log())
	}
}

func bearer(token string) []string { return []string{"Authorization", "Bearer " + token} }

// Without configured tokens the server generates one. Local clients can read without it, but change
// nothing.
func TestAbuse_AdminWithoutTokens(t *testing.T) {
	t.Parallel()
	s := start(t, perAddress("100"), "")
	for _, c := range adminCalls {
		got := ask(t, c.method, s.AdminURL+c.path, c.body)
		if refused := got.status == http.StatusUnauthorized; refused != (c.need >= 2) {
			t.Errorf("without a token: %s %s: %d %s, want refused %v", c.method, c.path, got.status, got.body, c.need >= 2)
		}
	}
	if got := ask(t, http.MethodPost, s.AdminURL+"/v1/reload", "", bearer(s.Token())...); got.status != http.StatusOK {
		t.Errorf("with the token of this start: %d %s, want 200", got.status, got.body)
	}
	if strings.Contains(s.Log(), s.Token()) {
		t.Errorf("the token is in the log:\n%s", s.Log())
	}
	info, err := os.Stat(s.TokenFile())
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o600 {
		t.Errorf("the file of the token has mode %v, want 0600", got)
	}
}

// Clients that guess tokens are throttled. Clients with a valid token are not.
func TestAbuse_AdminGuesses(t *testing.T) {
	t.Parallel()
	s := start(t, perAddress("100"), threeRoles)
	const guesses = 200
	var statuses [600]int
	for i := range guesses {
		fields := bearer(fmt.Sprintf("guess-%d-0123456789abcdef", i))
		switch i % 4 {
		case 1:
			fields = []string{"Authorization", "Basic " + configureToken}
		case 2:
			fields = append(bearer(configureToken), bearer(configureToken)...)
		case 3:
			fields = bearer(configureToken[:len(configureToken)-1])
		}
		got := ask(t, http.MethodPost, s.AdminURL+"/v1/reload", "", fields...).status
		statuses[got]++
		if got != http.StatusUnauthorized && got != http.StatusTooManyRequests {
			t.Errorf("guess %d, %q: status %d, want 401 or 429", i, fields, got)
		}
	}
	if statuses[http.StatusTooManyRequests] == 0 {
		t.Errorf("none of %d guesses was answered with 429", guesses)
	}
	if got := ask(t, http.MethodPost, s.AdminURL+"/v1/reload", "", bearer(configureToken)...); got.status != http.StatusOK {
		t.Errorf("the right token among guesses: %d %s, want 200", got.status, got.body)
	}
}

// An admin address that others can reach is refused without tokens, and so are tokens
// that can be guessed.
func TestAbuse_AdminMustBeGuarded(t *testing.T) {
	t.Parallel()
	for _, settings := range []string{
		"admin_listen: 0.0.0.0:0\n", "admin_listen: \":0\"\n", "admin_listen: \"[::]:0\"\n",
		"admin_tokens: [{name: a, role: operate, token: short}]\n", "admin_tokens: [{name: a, role: root, token: " + readToken + "}]\n",
		"admin_tokens: [{name: a, role: read, token: " + readToken + "}, {name: b, role: configure, token: " + readToken + "}]\n",
	} {
		path := filepath.Join(t.TempDir(), "mete.yaml")
		write(t, path, "listen: 127.0.0.1:0\n"+settings)
		cmd := exec.CommandContext(t.Context(), meted.Program(t), "serve", "--config", path)
		cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+t.TempDir())
		text, err := cmd.CombinedOutput()
		if err == nil || cmd.ProcessState.ExitCode() != 2 {
			t.Errorf("%q: %v, want exit status 2:\n%s", settings, err, text)
		}
		if strings.Contains(string(text), readToken) {
			t.Errorf("%q: a token is in the message: %s", settings, text)
		}
	}
}
