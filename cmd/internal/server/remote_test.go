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

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/cmd/internal/server"
	"github.com/metehq/mete/internal/proctest"
)

// withRedis is a configuration with its buckets in a Redis.
func withRedis(t *testing.T, r *proctest.Redis, policy string) config.Config {
	c := testConfig()
	c.Store, c.Policy = "redis://"+r.Addr+"?prefix=test:", policyFile(t, policy)
	return c
}

// takePath asks for one token for a path.
func (r *running) takePath(path string) (int, string) {
	r.t.Helper()
	return post(r.t, r.main+"/v1/take", strings.NewReader(`{"attributes":{"ip:address":"192.0.2.1","path":"`+path+`"}}`))
}

// onError is a policy with a rule for each path, that says what its name says.
func onError(names ...string) string {
	var b strings.Builder
	b.WriteString("rules:\n")
	for _, name := range names {
		fmt.Fprintf(&b, `  - name: %[1]s
    limit_keys: ["ip:address"]
    match: { path: /%[1]s }
    algorithm: token_bucket
    algorithm_config: { rate: 1/1d, burst: 5 }
    on_store_error: %[1]s
`, name)
	}
	return b.String()
}

func TestRemote_ServersShareBuckets(t *testing.T) {
	r := proctest.StartRedis(t)
	secret := strings.ReplaceAll(burst("4"), "ip:address", "header:authorization")
	a, b := start(t, withRedis(t, r, secret)), start(t, withRedis(t, r, secret))
	body := `{"attributes":{"header:authorization":"Bearer of-bad-news"}}`
	for i, s := range []*running{a, b, a, b, a, b} {
		want := 200
		if i >= 4 {
			want = 429
		}
		if got, text := post(t, s.main+"/v1/take", strings.NewReader(body)); got != want {
			t.Errorf("take %d: %d %s, want %d", i, got, text, want)
		}
	}
	keys, err := r.Do("KEYS", "*")
	if err != nil || strings.Contains(keys, "bad-news") || !strings.Contains(keys, "test:tb:client:") {
		t.Errorf("keys in Redis: %q, %v; want the bucket under a hash", keys, err)
	}
	if got := a.log.count("hash_key is not set"); got != 1 {
		t.Errorf("the log warns %d times of the missing hash_key, want once", got)
	}
}

// While Redis is gone each rule has its way, and none says 429 for it. When it is
// back, so are the buckets.
func TestRemote_RedisIsGone(t *testing.T) {
	r := proctest.StartRedis(t, "--appendonly", "yes", "--appendfsync", "always")
	s := start(t, withRedis(t, r, onError("open", "closed", "local")))
	paths := []string{"/open", "/closed", "/local"}
	for _, path := range paths {
		if got, text := s.takePath(path); got != 200 {
			t.Fatalf("take for %s: %d %s", path, got, text)
		}
	}
	r.Kill()
	for path, want := range map[string]int{"/open": 200, "/closed": 503, "/local": 200} {
		got, text := s.takePath(path)
		if got != want || !strings.Contains(text, `"degraded":true`) {
			t.Errorf("take for %s without Redis: %d %s, want %d, degraded", path, got, text, want)
		}
	}
	if got, text := get(t, s.admin+"/readyz"); got != 503 {
		t.Errorf("readyz with a closed rule: %d %s, want 503", got, text)
	}
	if got, _ := get(t, s.admin+"/livez"); got != 200 {
		t.Errorf("livez: %d, want 200", got)
	}
	text := s.metricsText()
	for _, line := range []string{
		`mete_decisions_total{by="open",outcome="allowed"} 1`,
		`mete_decisions_total{by="closed",outcome="denied"} 1`,
		`mete_decisions_total{by="local",outcome="allowed"} 1`,
		`mete_decisions_total{by="store",outcome="allowed"} 3`,
		`mete_local_spent_tokens_total 1`,
		`mete_let_through_tokens_total 1`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("the metrics lack %s:\n%s", line, text)
		}
	}

	r.Restart()
	eventually(t, "Redis decides again", func() bool {
		_, text := s.takePath("/closed")
		return !strings.Contains(text, `"degraded":true`)
	})
	eventually(t, "the server is ready", func() bool { got, _ := get(t, s.admin+"/readyz"); return got == 200 })
	eventually(t, "what was spent locally is charged", func() bool {
		return strings.Contains(s.metricsText(), "mete_local_unsettled_keys 0\n")
	})
	left := 0
	for range 6 {
		if got, _ := s.takePath("/local"); got == 200 {
			left++
		}
	}
	if left != 3 {
		t.Errorf("after one token from Redis and one without it, %d of 5 are left, want 3", left)
	}
}

// A server that nobody asks notices by itself that Redis is back.
func TestRemote_RedisIsBackAndNobodyAsks(t *testing.T) {
	r := proctest.StartRedis(t)
	s := start(t, withRedis(t, r, onError("open")))
	r.Kill()
	eventually(t, "the breaker opens", func() bool {
		s.takePath("/open")
		return strings.Contains(s.metricsText(), `mete_breaker_state{state="open"} 1`)
	})
	r.Restart()
	eventually(t, "the breaker closes", func() bool {
		return strings.Contains(s.metricsText(), `mete_breaker_state{state="closed"} 1`)
	})
	if got := s.log.count("the store answers again"); got != 1 {
		t.Errorf("the log says so %d times, want once:\n%s", got, s.log)
	}
}

// Where no rule refuses what Redis does not decide, there is no reason to send
// traffic elsewhere.
func TestRemote_ReadyWithoutRedis(t *testing.T) {
	r := proctest.StartRedis(t)
	s := start(t, withRedis(t, r, onError("open", "local")))
	r.Kill()
	if got, text := get(t, s.main+"/readyz"); got != 200 {
		t.Errorf("readyz: %d %s, want 200", got, text)
	}
}

// What does not answer is waited for; what refuses is not.
func TestRemote_CannotStart(t *testing.T) {
	c := testConfig()
	c.Store = "redis://:secret@" + proctest.FreeAddr(t)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	log := new(logBuffer)
	_, err := server.New(ctx, c, slog.New(slog.NewTextHandler(log, nil)))
	if !errors.Is(err, mete.ErrUnavailable) || strings.Contains(err.Error()+log.String(), "secret") {
		t.Errorf("nothing answers: %v, want %v and no secret", err, mete.ErrUnavailable)
	}
	if log.count("trying again") != 1 {
		t.Errorf("the log is\n%s\nwant one complaint", log)
	}

	c.Store = "redis://nobody:secret@" + proctest.StartRedis(t).Addr
	_, err = server.New(t.Context(), c, slog.New(slog.DiscardHandler))
	if err == nil || errors.Is(err, mete.ErrUnavailable) || !strings.Contains(err.Error(), "WRONGPASS") || strings.Contains(err.Error(), "secret") {
		t.Errorf("a wrong password: %v, want WRONGPASS and no secret", err)
	}
}
