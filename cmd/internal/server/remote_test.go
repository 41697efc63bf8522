// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/cmd/internal/server"
	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/internal/testkit"
	"github.com/metehq/mete/store"
)

// A remoteStore is a database server for the buckets.
type remoteStore struct {
	url    string
	label  string // in metrics
	server interface {
		Kill()
		Restart()
	}
	keys func() (string, error) // of all buckets that it has
}

func inRedis(t *testing.T) remoteStore {
	r := proctest.StartRedis(t, "--appendonly", "yes", "--appendfsync", "always")
	return remoteStore{
		url: "redis://" + r.Addr + "?prefix=test:", label: "redis", server: r,
		keys: func() (string, error) { return r.Do("KEYS", "test:tb:*") },
	}
}

func inPostgres(t *testing.T) remoteStore {
	p := proctest.StartPostgres(t)
	return remoteStore{
		url: p.URL() + "&schema=limits&durable=true&prefix=test:", label: "postgres", server: p,
		keys: func() (string, error) {
			return p.Psql("SELECT convert_from(key, 'UTF8') FROM limits.bucket_durable")
		},
	}
}

// forEachStore runs a test with each kind of remote store.
func forEachStore(t *testing.T, test func(t *testing.T, e remoteStore)) {
	t.Helper()
	t.Run("redis", func(t *testing.T) { t.Parallel(); test(t, inRedis(t)) })
	t.Run("postgres", func(t *testing.T) { t.Parallel(); test(t, inPostgres(t)) })
}

// with is a configuration with its buckets there.
func (e remoteStore) with(t *testing.T, policy string) config.Config {
	c := testConfig()
	c.Store, c.Policy = storeurl.MustParse(e.url), policyFile(t, policy)
	return c
}

// patient is like with, for tests that need an answer of the store, however slow the
// machine.
func (e remoteStore) patient(t *testing.T, policy string) config.Config {
	c := e.with(t, policy)
	c.Store = storeurl.MustParse(e.url + "&timeout=10s")
	return c
}

// takePath asks for one token for a path.
func (r *running) takePath(path string) (int, string) {
	r.t.Helper()
	return post(r.t, r.main+"/v1/take?status=429", strings.NewReader(`{"attributes":{"ip:address":"192.0.2.1","path":"`+path+`"}}`))
}

// onError returns a policy with one rule per path. The path is the rule's on_store_error action.
func onError(names ...string) string {
	var b strings.Builder
	b.WriteString("rules:\n")
	for _, name := range names {
		fmt.Fprintf(&b, `  - name: %[1]s
    limit_keys: ["ip:address"]
    match: { path: /%[1]s }
    deadline: 2s
    algorithm: token_bucket
    algorithm_config: { rate: 1/1d, burst: 5 }
    on_store_error: %[1]s
`, name)
	}
	return b.String()
}

func TestRemote_ServersShareBuckets(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(t *testing.T, e remoteStore) {
		c := e.patient(t, strings.ReplaceAll(burst("4"), "ip:address", "header:authorization"))
		a, b := start(t, c), start(t, c)
		body := `{"attributes":{"header:authorization":"Bearer of-bad-news"}}`
		for i, s := range []*running{a, b, a, b, a, b} {
			want := 200
			if i >= 4 {
				want = 429
			}
			if got, text := post(t, s.main+"/v1/take?status=429", strings.NewReader(body)); got != want {
				t.Errorf("take %d: %d %s, want %d", i, got, text, want)
			}
		}
		keys, err := e.keys()
		if err != nil || strings.Contains(keys, "bad-news") || !strings.Contains(keys, "client:") {
			t.Errorf("keys in the store: %q, %v; want the bucket under a hash", keys, err)
		}
		if a.log.Count("nodes=1") != 1 || b.log.Count("nodes=2") != 1 {
			t.Errorf("the logs do not say that there is one server, and then another:\n%s\n%s", a.log, b.log)
		}
		if got := a.log.Count("hash_key not set"); got != 1 {
			t.Errorf("the log warns %d times of the missing hash_key, want once", got)
		}
	})
}

// While the store is down, each rule applies its on_store_error action, and none returns 429. The buckets
// survive the outage.
func TestRemote_StoreIsGone(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(t *testing.T, e remoteStore) {
		s := start(t, e.with(t, onError("open", "closed", "local")))
		for _, path := range []string{"/open", "/closed", "/local"} {
			if got, text := s.takePath(path); got != 200 {
				t.Fatalf("take for %s: %d %s", path, got, text)
			}
		}
		e.server.Kill()
		for path, want := range map[string]int{"/open": 200, "/closed": 503, "/local": 200} {
			got, text := s.takePath(path)
			if got != want || !strings.Contains(text, `"degraded":true`) {
				t.Errorf("take for %s without the store: %d %s, want %d, degraded", path, got, text, want)
			}
		}
		if got, text := get(t, s.admin+"/readyz"); got != 503 {
			t.Errorf("readyz with a closed rule: %d %s, want 503", got, text)
		}
		if got, _ := get(t, s.admin+"/livez"); got != 200 {
			t.Errorf("livez: %d, want 200", got)
		}
		s.hasMetrics(
			`mete_decisions_total{by="open",outcome="allowed"} 1`,
			`mete_decisions_total{by="closed",outcome="denied"} 1`,
			`mete_decisions_total{by="local",outcome="allowed"} 1`,
			`mete_decisions_total{by="store",outcome="allowed"} 3`,
			`mete_local_spent_tokens_total 1`,
			`mete_let_through_tokens_total 1`,
		)

		e.server.Restart()
		testkit.Until(t, "the store decides again", func() bool {
			_, text := s.takePath("/closed")
			return !strings.Contains(text, `"degraded":true`)
		})
		testkit.Until(t, "the server is ready", func() bool { got, _ := get(t, s.admin+"/readyz"); return got == 200 })
		testkit.Until(t, "what was spent locally is charged", func() bool {
			return strings.Contains(s.metricsText(), "mete_local_unsettled_keys 0\n")
		})
		left := 0
		for range 6 {
			if got, _ := s.takePath("/local"); got == 200 {
				left++
			}
		}
		if left != 3 {
			t.Errorf("after one token from the store and one without it, %d of 5 are left, want 3", left)
		}
	})
}

// A server without traffic notices that its store is back.
func TestRemote_StoreIsBackAndNobodyAsks(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(t *testing.T, e remoteStore) {
		s := start(t, e.with(t, onError("open")))
		e.server.Kill()
		testkit.Until(t, "the breaker opens", func() bool {
			s.takePath("/open")
			return strings.Contains(s.metricsText(), `mete_breaker_state{state="open"} 1`)
		})
		e.server.Restart()
		testkit.Until(t, "the breaker closes", func() bool {
			return strings.Contains(s.metricsText(), `mete_breaker_state{state="closed"} 1`)
		})
		testkit.Until(t, "the log says so", func() bool { return s.log.Count("circuit breaker closed") == 1 })
	})
}

// If no rule rejects requests during an outage, the server stays ready.
func TestRemote_ReadyWithoutStore(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(t *testing.T, e remoteStore) {
		s := start(t, e.with(t, onError("open", "local")))
		e.server.Kill()
		if got, text := get(t, s.main+"/readyz"); got != 200 {
			t.Errorf("readyz: %d %s, want 200", got, text)
		}
	})
}

// The server waits for a store that does not answer.
func TestRemote_NothingAnswers(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"redis://:secret@" + proctest.FreeAddr(t), "postgres://u:secret@" + proctest.FreeAddr(t) + "/d"} {
		c := testConfig()
		c.Store = storeurl.MustParse(url)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		log := new(testkit.Log)
		_, err := server.New(ctx, c, slog.New(slog.NewTextHandler(log, nil)))
		if !errors.Is(err, store.ErrUnavailable) || strings.Contains(err.Error()+log.String(), "secret") {
			t.Errorf("%s: %v, want %v and no secret", url, err, store.ErrUnavailable)
		}
		if log.Count("trying again") != 1 {
			t.Errorf("%s: the log is\n%s\nwant one complaint", url, log)
		}
	}
}

// A server and its store can be started together.
func TestRemote_StoreComesLate(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(t *testing.T, e remoteStore) {
		e.server.Kill()
		log := new(testkit.Log)
		came := make(chan error, 1)
		go func() {
			s, err := server.New(t.Context(), e.with(t, burst("1")), slog.New(slog.NewTextHandler(log, nil)))
			if err == nil {
				s.Close()
			}
			came <- err
		}()
		testkit.Until(t, "it is tried again", func() bool { return log.Count("trying again") > 0 })
		e.server.Restart()
		if err := <-came; err != nil {
			t.Errorf("New: %v", err)
		}
	})
}

// The server does not wait for a store that rejects its login.
func TestRemote_StoreRefuses(t *testing.T) {
	t.Parallel()
	redis, postgres := proctest.StartRedis(t).Addr, proctest.StartPostgres(t).Addr
	for url, want := range map[string]string{
		"redis://nobody:secret@" + redis:                              "WRONGPASS",
		"postgres://nobody:secret@" + postgres + "/postgres":          `"nobody"`,
		"postgres://" + postgres + "/x?user=postgres&password=secret": `"x"`,
	} {
		c := testConfig()
		c.Store = storeurl.MustParse(url)
		_, err := server.New(t.Context(), c, slog.New(slog.DiscardHandler))
		if err == nil || errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %s, and no secret", url, err, want)
		}
	}
}
