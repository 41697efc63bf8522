// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/metehq/mete/cmd/internal/admintoken"
)

// signIn exchanges the token of a link, with header fields, and returns the status and the
// token of the session.
func (r *running) signIn(link string, fields ...string) (status int, session string) {
	r.t.Helper()
	req, err := http.NewRequest("POST", r.admin+"/dashboard/session", strings.NewReader(`{"token":"`+link+`"}`))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header["Authorization"] = []string{} // so that the default client adds none
	for i := 0; i < len(fields); i += 2 {
		req.Header.Set(fields[i], fields[i+1])
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
	if got := resp.Header.Get("Cache-Control"); got != "no-store" {
		r.t.Errorf("Cache-Control: %q, want no-store", got)
	}
	var answer admintoken.SignIn
	if resp.StatusCode == http.StatusOK {
		if err := json.Unmarshal(text, &answer); err != nil {
			r.t.Fatal(err)
		}
	}
	return resp.StatusCode, answer.Token
}

// onceIn returns the one-time token in a link.
func onceIn(t *testing.T, link string) string {
	t.Helper()
	_, once, ok := strings.Cut(link, "/dashboard/#token=")
	if !ok || len(once) < 26 { // 26 letters of base32 are 130 bits
		t.Fatalf("link %q", link)
	}
	return once
}

// The link of a server signs in once, as the token that the server made.
func TestDashboardLink(t *testing.T) {
	t.Parallel()
	s := start(t, testConfig())
	once := onceIn(t, s.server.DashboardLink())
	status, session := s.signIn(once)
	if status != http.StatusOK || session == "" || session == once {
		t.Fatalf("status %d, session %q", status, session)
	}
	if status, _ := s.signIn(once); status != http.StatusUnauthorized {
		t.Errorf("the second time: status %d, want 401", status)
	}
	if got, answer := s.as(session, "GET", "/v1/me", ""); got != 200 || !strings.Contains(answer, `"name":"local","role":"configure"`) {
		t.Errorf("v1/me: %d %s, want local with the role configure", got, answer)
	}
	if got, answer := s.as(session, "POST", "/v1/reload", ""); got != 200 {
		t.Errorf("reload in the session: %d %s, want 200", got, answer)
	}
	if got, _ := s.as(once, "GET", "/v1/overrides", ""); got != http.StatusUnauthorized {
		t.Errorf("the token of the link as an admin token: %d, want 401", got)
	}
	if got, _ := s.as(session, "POST", "/dashboard/link", ""); got != http.StatusUnauthorized {
		t.Errorf("a link for a session: %d, want 401", got)
	}
	for _, secret := range []string{once, session} {
		if strings.Contains(s.log.String(), secret) {
			t.Error("the log has a token")
		}
	}
}

// Of many programs that use a link at the same time, one signs in.
func TestDashboardLink_WorksOnce(t *testing.T) {
	t.Parallel()
	s := start(t, testConfig())
	once := onceIn(t, s.server.DashboardLink())
	var signedIn atomic.Int32
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if status, _ := s.signIn(once); status == http.StatusOK {
				signedIn.Add(1)
			}
		})
	}
	group.Wait()
	if n := signedIn.Load(); n != 1 {
		t.Errorf("%d signed in, want 1", n)
	}
}

// Wrong requests neither sign in nor use the link up.
func TestDashboardLink_Refuses(t *testing.T) {
	t.Parallel()
	s := start(t, testConfig())
	once := onceIn(t, s.server.DashboardLink())
	for _, tt := range []struct {
		link   string
		fields []string
		want   int
	}{
		{once[1:], nil, http.StatusUnauthorized},
		{"", nil, http.StatusUnauthorized},
		{strings.Repeat("A", 2000), nil, http.StatusBadRequest},
		{once, []string{"X-Forwarded-For", "192.0.2.1"}, http.StatusForbidden},
		{once, []string{"Forwarded", "for=192.0.2.1"}, http.StatusForbidden},
		{once, []string{"Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
		{once, []string{"Origin", "https://example.org"}, http.StatusForbidden},
	} {
		if status, _ := s.signIn(tt.link, tt.fields...); status != tt.want {
			t.Errorf("%.30q %q: status %d, want %d", tt.link, tt.fields, status, tt.want)
		}
	}
	if status, _ := s.signIn(once); status != http.StatusOK {
		t.Errorf("the link afterwards: status %d, want 200", status)
	}
	if got, _ := s.as("", "POST", "/dashboard/link", ""); got != http.StatusUnauthorized {
		t.Errorf("a link without a token: %d, want 401", got)
	}
	if got, _ := s.as("wrong-token-0123456789", "POST", "/dashboard/link", ""); got != http.StatusUnauthorized {
		t.Errorf("a link with a wrong token: %d, want 401", got)
	}
}

// Any admin token makes links, with its own role. A server with tokens of its own prints none.
func TestDashboardLink_OfAnAdminToken(t *testing.T) {
	t.Parallel()
	s := start(t, withTokens())
	if link := s.server.DashboardLink(); link != "" {
		t.Errorf("link %q, want none", link)
	}
	status, answer := s.as(readerToken, "POST", "/dashboard/link", "")
	var link admintoken.SignIn
	if err := json.Unmarshal([]byte(answer), &link); status != http.StatusOK || err != nil {
		t.Fatalf("status %d, %s", status, answer)
	}
	status, session := s.signIn(link.Token)
	if status != http.StatusOK {
		t.Fatalf("status %d", status)
	}
	if got, answer := s.as(session, "GET", "/v1/me", ""); got != 200 || !strings.Contains(answer, `"name":"grafana","role":"read"`) {
		t.Errorf("v1/me: %d %s, want grafana with the role read", got, answer)
	}
}
