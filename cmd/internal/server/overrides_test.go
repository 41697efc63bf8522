// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/cmd/internal/server"
	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/internal/testkit"
)

// ask asks the admin address.
func (r *running) ask(method, path, body string) (int, string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.admin+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	return read(r.t, resp)
}

// block blocks a client for an hour.
func (r *running) block(id, client string) {
	r.t.Helper()
	until := time.Now().Add(time.Hour).Format(time.RFC3339)
	status, answer := r.ask(http.MethodPut, "/v1/overrides", fmt.Sprintf(
		`{"id":%q,"action":"block","match":{"ip:address":%q},"reason":"test","author":"kim","expires_at":%q}`, id, client, until))
	if status != 200 {
		r.t.Fatalf("blocking %s: %d %s", client, status, answer)
	}
}

func (r *running) unblock(id string) {
	r.t.Helper()
	if status, answer := r.ask(http.MethodDelete, "/v1/overrides/"+id+"?author=kim&reason=over", ""); status != 200 {
		r.t.Fatalf("removing %s: %d %s", id, status, answer)
	}
}

// overrides returns the list of a server.
func (r *running) overrides() api.Overrides {
	r.t.Helper()
	status, answer := r.ask(http.MethodGet, "/v1/overrides", "")
	var list api.Overrides
	if err := json.Unmarshal([]byte(answer), &list); err != nil || status != 200 {
		r.t.Fatalf("list: %d %s, %v", status, answer, err)
	}
	return list
}

func (r *running) blocked(client string) bool {
	r.t.Helper()
	_, answer := post(r.t, r.main+"/v1/peek", strings.NewReader(`{"attributes":{"ip:address":"`+client+`"}}`))
	return strings.Contains(answer, `"reason":"blocked"`)
}

// An override applies to all servers that share the store, and after a restart.
func TestOverrides_Shared(t *testing.T) {
	t.Parallel()
	postgres := strings.Replace(proctest.StartPostgres(t).URL(), "postgres@", "postgres:secret@", 1) + "&timeout=1m"
	for name, store := range map[string]string{"redis": "redis://" + proctest.StartRedis(t).Addr + "?timeout=1m", "postgres": postgres} {
		t.Run(name, func(t *testing.T) {
			c := testConfig()
			c.Store, c.Policy = storeurl.MustParse(store), policyFile(t, burst("2"))
			a, b := start(t, c), start(t, c)
			a.block("b1", "192.0.2.1")
			if !a.blocked("192.0.2.1") {
				t.Error("the client is not blocked where it was said")
			}
			testkit.Until(t, "the other server blocks, too", func() bool { return b.blocked("192.0.2.1") })
			write(t, c.Policy, burst("3"))
			testkit.Until(t, "both reload", func() bool { return a.log.Count("policy reloaded")*b.log.Count("policy reloaded") > 0 })
			if !a.blocked("192.0.2.1") || !b.blocked("192.0.2.1") || a.blocked("192.0.2.2") {
				t.Error("after a reload other clients are blocked than before")
			}
			b.end()
			b = start(t, c)
			if !b.blocked("192.0.2.1") || b.log.Count("overrides active") != 1 {
				t.Errorf("after a restart the client is not blocked, or the log does not say so:\n%s", b.log)
			}
			b.unblock("b1")
			testkit.Until(t, "the other server does not block any more", func() bool { return !a.blocked("192.0.2.1") })
			audit := a.overrides().Audit
			if len(audit) != 2 || audit[1].Author != "kim" || audit[1].Reason != "over" {
				t.Errorf("audit %+v, want that it was made and removed", audit)
			}
			if !a.overrides().Persistent || a.log.Count("author=kim") != 2 {
				t.Errorf("persistent %t; the log should have both:\n%s", a.overrides().Persistent, a.log)
			}
		})
	}
}

// During an outage the last overrides stay active, and changes are rejected.
func TestOverrides_StoreIsGone(t *testing.T) {
	t.Parallel()
	p := proctest.StartPostgres(t)
	c := testConfig()
	c.Store, c.Policy = storeurl.MustParse(strings.Replace(p.URL(), "postgres@", "postgres:secret@", 1)), policyFile(t, burst("2"))
	s := start(t, c)
	s.block("b1", "192.0.2.1")
	p.Kill()
	if status, answer := s.ask(http.MethodDelete, "/v1/overrides/b1?author=kim&reason=over", ""); status != 503 || !strings.Contains(answer, "problem") && !strings.Contains(answer, "store") {
		t.Errorf("a change without the store: %d %s, want 503", status, answer)
	}
	testkit.Until(t, "the log says so", func() bool { return s.log.Count("overrides sync failed") == 1 })
	if !s.blocked("192.0.2.1") {
		t.Error("what was blocked is not any more")
	}
	p.Restart()
	testkit.Until(t, "it is followed again", func() bool { return s.log.Count("overrides sync recovered") == 1 })
	s.unblock("b1")
	if s.blocked("192.0.2.1") {
		t.Error("what was removed holds")
	}
}

func TestOverrides_MemoryWithFile(t *testing.T) {
	t.Parallel()
	c := testConfig()
	file := filepath.Join(t.TempDir(), "buckets")
	c.Store, c.Policy = storeurl.MustParse("memory:?file="+file), policyFile(t, burst("2"))
	s := start(t, c)
	s.block("b1", "192.0.2.1")
	s.block("b2", "192.0.2.2")
	s.unblock("b2")
	// An acknowledged override is on disk, even after a crash.
	other := c
	other.Store = storeurl.MustParse("memory:?file=" + file + "2")
	copied, err := os.ReadFile(file + ".overrides")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file+"2.overrides", copied, 0o600); err != nil {
		t.Fatal(err)
	}
	restarted := start(t, other)
	if !restarted.blocked("192.0.2.1") || restarted.blocked("192.0.2.2") || !restarted.overrides().Persistent {
		t.Errorf("after a restart other clients are blocked than before; log:\n%s", restarted.log)
	}
	if info, err := os.Stat(file + ".overrides"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v; want that only its owner can read it", info, err)
	}

	for _, garbage := range []string{"", "{", strings.Repeat(" ", 1<<20+1)} {
		write(t, file+"3.overrides", garbage)
		broken := c
		broken.Store = storeurl.MustParse("memory:?file=" + file + "3")
		if s, err := server.New(t.Context(), broken, slog.New(slog.DiscardHandler)); err == nil {
			s.Close()
			t.Errorf("a server begins although its overrides are %.10q", garbage)
		} else if !strings.Contains(err.Error(), file+"3.overrides: ") {
			t.Errorf("overrides %.10q: error %v, want one that names the file", garbage, err)
		}
	}
}

func TestOverrides_MemoryAlone(t *testing.T) {
	t.Parallel()
	s := start(t, testConfig())
	s.block("b1", "192.0.2.1")
	if !s.blocked("192.0.2.1") || s.overrides().Persistent || s.log.Count("override is not persistent") != 1 {
		t.Errorf("blocked %t, persistent %t; the log should say what a restart does:\n%s", s.blocked("192.0.2.1"), s.overrides().Persistent, s.log)
	}
}

// Overrides in the policy file are listed, counted and logged at the start.
func TestOverrides_OfTheFile(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.Policy = policyFile(t, burst("2")+`overrides:
  - { id: filed, action: block, match: { "ip:address": 192.0.2.1 }, reason: r, author: a, expires_at: 2099-01-01T00:00:00Z }
global_shadow: { reason: first week, author: a, expires_at: 2099-01-01T00:00:00Z }
`)
	s := start(t, c)
	if s.log.Count("policy overrides active") != 1 || s.log.Count("all limits suspended by an override") != 1 {
		t.Errorf("the log does not say what is in force:\n%s", s.log)
	}
	s.block("b1", "192.0.2.2")
	s.hasMetrics(`mete_overrides_in_force{action="block"} 2`, `mete_overrides_in_force{action="allow"} 0`,
		"mete_policy_global_shadow 1", "mete_break_glass 0")
	if status, _ := s.ask(http.MethodDelete, "/v1/overrides/filed?author=kim&reason=over", ""); status != 409 {
		t.Errorf("removing one of the file: %d, want 409", status)
	}
	if list := s.overrides().Overrides; len(list) != 3 || list[0].Source != "file" || list[2].Source != "admin" {
		t.Errorf("listed %+v, want those of the file and the other", list)
	}
}

// Overrides are at the admin address alone.
func TestOverrides_NotAtTheMainAddress(t *testing.T) {
	t.Parallel()
	s := start(t, testConfig())
	resp, err := http.Get(s.main + "/v1/overrides")
	if err != nil {
		t.Fatal(err)
	}
	if status, text := read(t, resp); status != 404 || !strings.Contains(text, "admin address") {
		t.Errorf("at the main address: %d %s, want 404", status, text)
	}
}
