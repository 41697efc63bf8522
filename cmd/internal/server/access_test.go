// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/httpapi"
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
		{Name: "grafana", Role: httpapi.RoleRead, Token: readerToken},
		{Name: "on-call", Role: httpapi.RoleOperate, Token: operatorToken},
		{Name: "deploy", Role: httpapi.RoleConfigure, Token: ownerToken},
	}
	return c
}

// Every endpoint of the admin address, and what it answers to each role.
func TestAccess_Roles(t *testing.T) {
	t.Parallel()
	const (
		request = `{"attributes":{"header:x-api-key":"k1"}}`
		block   = `{"id":"b","action":"block","match":{"header:x-api-key":"zz"},"reason":"r","author":"a","expires_at":"2099-01-01T00:00:00Z"}`
		breaker = `{"id":"g","action":"break_glass","reason":"r","author":"a","expires_at":"2099-01-01T00:00:00Z"}`
	)
	s := start(t, withTokens())
	for _, test := range []struct {
		method, path, body string
		want               [4]int // no token, read, operate, configure
	}{
		{"GET", "/livez", "", [4]int{200, 200, 200, 200}},
		{"GET", "/readyz", "", [4]int{200, 200, 200, 200}},
		{"GET", "/metrics", "", [4]int{401, 200, 200, 200}},
		{"POST", "/v1/peek", request, [4]int{401, 200, 200, 200}},
		{"POST", "/v1/explain", request, [4]int{401, 200, 200, 200}},
		{"GET", "/v1/overrides", "", [4]int{401, 200, 200, 200}},
		{"POST", "/v1/take", request, [4]int{401, 403, 200, 200}},
		{"POST", "/v1/hold", request, [4]int{401, 403, 200, 200}},
		{"POST", "/v1/settle", `{"hold":"x","cost":1}`, [4]int{401, 403, 404, 404}},
		{"POST", "/v1/release", `{"hold":"x"}`, [4]int{401, 403, 404, 404}},
		{"POST", "/v1/renew", `{"hold":"x","for":"1s"}`, [4]int{401, 403, 404, 404}},
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
	// The log names the author of a change, but never contains a token.
	log := s.log.String()
	for _, want := range []string{
		`what=reset by=on-call role=operate from=127.0.0.1 status=200`, `what=refund by=on-call role=operate`, `what=reset by="" role=none from=127.0.0.1 status=401`,
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

// An unknown token is rejected and rate limited separately.
func TestAccess_WrongTokens(t *testing.T) {
	t.Parallel()
	s := start(t, withTokens())
	limited := false
	for i := range 30 {
		wrong := []string{ownerToken[1:], ownerToken + "x", strings.ToUpper(ownerToken), "x" + fmt.Sprint(i)}[i%4]
		switch got, answer := s.as(wrong, "POST", "/v1/reload", ""); got {
		case http.StatusUnauthorized:
			if !strings.Contains(answer, "unknown token") {
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
	t.Parallel()
	for name, c := range map[string]config.Config{"with tokens": withTokens(), "open": testConfig()} {
		t.Run(name, func(t *testing.T) { isRefused(t, start(t, c)) })
	}
}

func isRefused(t *testing.T, s *running) {
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
	t.Parallel()
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

// Without tokens in the settings, the server creates one for its user in a private file, and removes it at the
// end.
func TestAccess_MadeToken(t *testing.T) {
	t.Parallel()
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

// If the server cannot save a token, the admin API is read-only.
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
	if !strings.Contains(s.log.String(), "admin API is read-only") {
		t.Errorf("the log does not say so:\n%s", s.log)
	}
}

// Without configured tokens, clients of this machine can read. Requests that a local proxy forwards and
// pages with a rebound name cannot.
func TestAccess_NotOfThisMachine(t *testing.T) {
	t.Parallel()
	s := start(t, testConfig())
	for _, tt := range []struct {
		name, value string
		want        int
	}{
		{"Accept", "*/*", 200},
		{"Host", "localhost:8081", 200},
		{"X-Forwarded-For", "198.51.100.1", 401},
		{"X-Forwarded-Host", "mete.example", 401},
		{"X-Forwarded-Proto", "https", 401},
		{"X-Real-Ip", "198.51.100.1", 401},
		{"Forwarded", "for=198.51.100.1", 401},
		{"Via", "1.1 proxy", 401},
	} {
		for _, path := range []string{"/v1/overrides", "/v1/top", "/metrics"} {
			if got := s.looks(path, tt.name, tt.value); got != tt.want {
				t.Errorf("%s with %s: %s: status %d, want %d", path, tt.name, tt.value, got, tt.want)
			}
		}
	}
	if got := s.looks("/metrics", "Host", "evil.example"); got != http.StatusUnauthorized {
		t.Errorf("/metrics as evil.example: status %d, want 401", got)
	}
	if got := s.looks("/readyz", "X-Forwarded-For", "198.51.100.1"); got != http.StatusOK {
		t.Errorf("/readyz through a proxy: status %d, want 200", got)
	}
}

// looks sends a GET without a token and with a header field, and returns the status.
func (r *running) looks(path, name, value string) int {
	r.t.Helper()
	req, err := http.NewRequest(http.MethodGet, r.admin+path, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header["Authorization"] = []string{} // there, so that the default client adds none
	req.Header.Set(name, value)
	if name == "Host" {
		req.Host = value
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// Clients without a token cannot fill the log. Each admin action with a token is logged.
func TestAccess_AuditIsNotFlooded(t *testing.T) {
	t.Parallel()
	s := start(t, withTokens())
	const tries = 50
	begun := time.Now()
	for range tries {
		if got, answer := s.as("", "POST", "/v1/reload", ""); got != http.StatusUnauthorized {
			t.Errorf("without a token: %d %s, want 401", got, answer)
		}
		if got, answer := s.as(readerToken, "POST", "/v1/reload", ""); got != http.StatusForbidden {
			t.Errorf("as a reader: %d %s, want 403", got, answer)
		}
	}
	most := 11 + int(time.Since(begun).Seconds()) // a burst of ten, then one per second
	if n := s.log.Count(`what=reload by=""`); n < 1 || n > most {
		t.Errorf("%d lines about %d requests without a token, want at most %d", n, tries, most)
	}
	if n := s.log.Count(`what=reload by=grafana`); n != tries {
		t.Errorf("%d lines about %d requests with one, want all", n, tries)
	}
}

// No spelling of a path, and no method, leads around the roles.
func TestAccess_Spellings(t *testing.T) {
	t.Parallel()
	s := start(t, withTokens())
	for _, tt := range []struct {
		method, target string
		want           int
	}{
		{"POST", "/v1/%72eset", 401}, {"POST", "/%76%31/reset", 401}, {"POST", "http://127.0.0.1/v1/reset", 401},
		{"POST", "//v1/reset", 404}, {"POST", "/v1//reset", 404}, {"POST", "/v1/reset/", 404}, {"POST", "/v1/./reset", 404},
		{"POST", "/livez/../v1/reset", 404}, {"POST", "/v1/decision/../reset", 404}, {"POST", "/v1/RESET", 404}, {"POST", "/v1%2freset", 401},
		{"POST", "/v1/decision%2f..%2freset", 404}, {"POST", "/metrics/../v1/reset", 404}, {"POST", "/v1/reset;x", 404}, {"POST", "/v1/reset%00", 404},
		{"GET", "/v1/reset", 405}, {"OPTIONS", "/v1/reset", 405}, {"PATCH", "/v1/overrides", 401}, {"HEAD", "/v1/overrides", 401},
		{"HEAD", "/metrics", 401}, {"POST", "/metrics", 401}, {"GET", "/metrics%2f", 404}, {"GET", "//metrics", 404}, {"POST", "/livez", 405},
		{"QUERY", "/v1/explain", 405}, {"DELETE", "/v1/overrides/x%2f..?author=a&reason=r", 401},
	} {
		conn, err := net.Dial("tcp", s.server.AdminAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Http-Method-Override: PUT\r\nX-Original-Url: /livez\r\nX-Rewrite-Url: /livez\r\nConnection: close\r\n\r\n", tt.method, tt.target)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Errorf("%s %s: %v", tt.method, tt.target, err)
		} else if resp.Body.Close(); resp.StatusCode != tt.want {
			t.Errorf("%s %s: status %d, want %d", tt.method, tt.target, resp.StatusCode, tt.want)
		}
		conn.Close()
	}
}

// Wrong tokens from one address do not delay other addresses.
func TestAccess_WrongTokensOfOthers(t *testing.T) {
	t.Parallel()
	s := start(t, withTokens())
	for got := 0; got != http.StatusTooManyRequests; {
		if got, _ = s.as("wrong", "POST", "/v1/reload", ""); got != http.StatusUnauthorized && got != http.StatusTooManyRequests {
			t.Fatalf("a wrong token: %d, want 401 or 429", got)
		}
	}
	other := &http.Transport{DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).DialContext}
	defer other.CloseIdleConnections()
	req, err := http.NewRequest(http.MethodPost, s.admin+"/v1/reload", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer wrong")
	resp, err := other.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a wrong token from another address: %s, want 401", resp.Status)
	}
}

// A token file is reloaded after a change. An invalid token does not replace a valid one.
func TestAccess_TokenFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(ownerToken + "\n")
	c := testConfig()
	c.AdminTokens = []config.AdminToken{{Name: "deploy", Role: httpapi.RoleConfigure, Token: ownerToken, File: file}, {Name: "grafana", Role: httpapi.RoleRead, Token: readerToken}}
	s := start(t, c)
	status := func(token string) int { got, _ := s.as(token, "GET", "/v1/overrides", ""); return got }
	write("short")
	s.await("a complaint", func() error {
		if !strings.Contains(s.log.String(), "token not replaced, old token stays active") {
			return fmt.Errorf("none")
		}
		return nil
	})
	if got := status(ownerToken); got != 200 {
		t.Errorf("the old token, while the new one is none: %d, want 200", got)
	}
	write(operatorToken)
	s.await("the new token", func() error {
		if got := status(operatorToken); got != 200 {
			return fmt.Errorf("status %d", got)
		}
		return nil
	})
	if got := status(ownerToken); got != 401 && got != 429 { // after so many wrong ones
		t.Errorf("the old token afterwards: %d, want 401", got)
	}
	if got := status(readerToken); got != 200 {
		t.Errorf("another's token: %d, want 200", got)
	}
}
