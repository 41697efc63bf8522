// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/guard"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/redisstore"
	"github.com/metehq/mete/store"
)

// matcher returns a policy with a limit of 3 per API key. An empty key selects the store's hash key.
func matcher(t *testing.T, key string) *policy.Matcher {
	t.Helper()
	m, err := policy.Load([]byte(`{"rules": [{"name": "per-key", "limit_keys": ["header:x-api-key"], "on_store_error": "local",
		"deadline": "10s", "algorithm_config": {"rate": "3/1000h", "burst": 3}}]}`), policy.Options{HashKey: []byte(key)})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func newLimiter(t *testing.T, url, key string) *mete.Limiter {
	t.Helper()
	l, err := redisstore.NewLimiter(t.Context(), url, matcher(t, key))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func take(t *testing.T, l *mete.Limiter) mete.Decision {
	t.Helper()
	d, err := l.Take(context.Background(), mete.Request{Attributes: mete.Attrs{"header:x-api-key": "k1"}})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// recovered waits until Redis has been charged this much, minus the refill.
func recovered(t *testing.T, l *mete.Limiter, taken bucket.Tokens) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), awhile)
	defer cancel()
	if err := proctest.Poll(ctx, func(context.Context) error {
		if s := l.Stats(); s.Unsettled > 0 || s.Charged < taken*9/10 {
			return fmt.Errorf("%d keys are still to be charged, charged %v of %v", s.Unsettled, s.Charged, taken)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// TestNewLimiter_OfThreeProcesses proves that processes share limits without a configured secret: they use the
// store's.
func TestNewLimiter_OfThreeProcesses(t *testing.T) {
	prepare := func() string { return "redis://" + proctest.StartRedis(t).Addr + "?prefix=shop:&timeout=10s" }
	results := proctest.RunAgain(t, 3, prepare, func(url string) string {
		l, admitted := newLimiter(t, url, ""), 0
		for range 3 {
			d := take(t, l)
			if d.Degraded {
				t.Fatalf("Redis did not answer: %+v", d)
			}
			if d.Allowed {
				admitted++
			}
		}
		return strings.Repeat("x", admitted)
	})
	if sum := len(strings.Join(results, "")); results != nil && sum != 3 {
		t.Errorf("three processes admitted %d, want the limit of 3", sum)
	}
}

// TestNewLimiter_RecoversByItself proves that Redis is charged for local takes after an outage, without any
// request.
func TestNewLimiter_RecoversByItself(t *testing.T) {
	r := proctest.StartRedis(t)
	proxy := proctest.StartProxy(t, r.Addr)
	l := newLimiter(t, "redis://"+proxy.Addr, "")
	proxy.Refuse(true)
	proxy.CutNow()
	if d := take(t, l); !d.Allowed || !d.Degraded {
		t.Fatalf("take without Redis: %+v", d)
	}
	proxy.Refuse(false)
	recovered(t, l, bucket.Token)
}

// TestNewLimiter_DividesTheLimit proves that without Redis, each of two processes admits half of the limit.
func TestNewLimiter_DividesTheLimit(t *testing.T) {
	r := proctest.StartRedis(t)
	proxy := proctest.StartProxy(t, r.Addr)
	newLimiter(t, "redis://"+r.Addr, "")
	l := newLimiter(t, "redis://"+proxy.Addr, "")
	proxy.Refuse(true)
	proxy.CutNow()
	admitted := 0
	for range 3 {
		if take(t, l).Allowed {
			admitted++
		}
	}
	if admitted != 1 {
		t.Errorf("one of two processes admitted %d of a limit of 3, want 1, the whole tokens of its half", admitted)
	}
}

// TestNewLimiter_RecoversBehindTheBreaker opens the circuit breaker, which lets the recovery probe without
// requests.
func TestNewLimiter_RecoversBehindTheBreaker(t *testing.T) {
	r := proctest.StartRedis(t)
	proxy := proctest.StartProxy(t, r.Addr)
	l := newLimiter(t, "redis://"+proxy.Addr, "")
	proxy.Refuse(true)
	proxy.CutNow()
	opened := func() bool { return l.Store().(*guard.Store).State() == guard.StateOpen }
	taken := bucket.Tokens(0)
	for i := 0; !opened() || i < 20; i++ {
		d, err := l.Take(context.Background(), mete.Request{Attributes: mete.Attrs{"header:x-api-key": fmt.Sprint("k", i)}})
		if err != nil || !d.Degraded || !d.Allowed {
			t.Fatalf("take %d without Redis: %+v, %v", i, d, err)
		}
		taken += d.Taken
	}
	proxy.Refuse(false)
	recovered(t, l, taken)
}

func TestNewLimiter_InACluster(t *testing.T) {
	url := "redis+cluster://" + strings.Join(proctest.StartCluster(t, 3, 0).Addrs, ",") + "?timeout=10s"
	first, second := newLimiter(t, url, ""), newLimiter(t, url, "")
	for i, want := range []bool{true, true, true, false} {
		if d := take(t, []*mete.Limiter{first, second}[i%2]); d.Allowed != want || d.Degraded {
			t.Errorf("take %d: %+v, want %t", i, d, want)
		}
	}
}

// TestLimiter_CloseChargesTheRest proves that Close charges the spending of an outage.
func TestLimiter_CloseChargesTheRest(t *testing.T) {
	r := proctest.StartRedis(t)
	proxy := proctest.StartProxy(t, r.Addr)
	l := newLimiter(t, "redis://"+proxy.Addr, "")
	proxy.Refuse(true)
	proxy.CutNow()
	for range 3 {
		take(t, l)
	}
	proxy.Refuse(false)
	if err := l.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
	if d := take(t, newLimiter(t, "redis://"+r.Addr, "")); d.Allowed || d.Degraded {
		t.Errorf("another process after three takes in an outage: %+v, want a denial", d)
	}
	if d := take(t, l); !d.Degraded {
		t.Errorf("take after Close: %+v, want a degraded decision", d)
	}
}

func TestNewLimiter_Errors(t *testing.T) {
	addr := proctest.FreeAddr(t)
	m := matcher(t, "")
	for _, tt := range []struct {
		url  string
		m    *policy.Matcher
		is   error
		says string
	}{
		{"redis://" + addr, nil, policy.ErrRequired, "policyyaml.LoadFile"},
		{"localhost:6379", m, nil, `url without "://": redisstore: url: must begin with redis://`},
		{"http://:secret@" + addr, m, nil, `url "http://…": redisstore: url: must begin with redis://`},
		{"redis://:secret@" + addr + "/x", m, nil, `database "x": must be a number`},
		{"redis://:secret@" + addr + "?tiemout=1s", m, nil, "tiemout"},
		{"redis://:secret@" + addr, m, store.ErrUnavailable, "server " + addr + ": redisstore: connect: "},
		{"redis://:secret@" + addr, m, store.ErrUnavailable, "start it, or correct the address"},
	} {
		l, err := redisstore.NewLimiter(t.Context(), tt.url, tt.m)
		if err == nil {
			l.Close()
			t.Errorf("%s: no error", tt.url)
			continue
		}
		if tt.is != nil && !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: error %q, want one with %q that wraps %v, without the password", tt.url, err, tt.says, tt.is)
		}
	}
}

// TestNode_NewLimiter proves that hooks and other settings work with a Node.
func TestNode_NewLimiter(t *testing.T) {
	node, err := redisstore.Open(t.Context(), "redis://"+proctest.StartRedis(t).Addr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := node.NewLimiter(t.Context(), nil, mete.Config{}); !errors.Is(err, policy.ErrRequired) {
		t.Errorf("without a policy: %v", err)
	}
	seen := 0
	l, err := node.NewLimiter(t.Context(), matcher(t, ""), mete.Config{OnDecision: func(context.Context, *mete.Decision) { seen++ }})
	if err != nil {
		t.Fatal(err)
	}
	take(t, l)
	if err := l.Close(); err != nil || seen != 1 {
		t.Errorf("%d decisions seen, close: %v", seen, err)
	}
}

// TestNewLimiter_RefusesAnotherHashKey rejects a second hash key on one Redis, which would double the limit.
func TestNewLimiter_RefusesAnotherHashKey(t *testing.T) {
	for name, tt := range map[string]struct {
		first, second string
		refused       bool
	}{
		"the store's own":            {"", "", false},
		"the same":                   {"a", "a", false},
		"another one":                {"a", "b", true},
		"the store's own, and after": {"", "a", true},
		"one, and the store's own":   {"a", "", true},
	} {
		url := "redis://" + proctest.StartRedis(t).Addr + "?prefix=shop:"
		first := newLimiter(t, url, tt.first)
		l, err := redisstore.NewLimiter(t.Context(), url, matcher(t, tt.second))
		if err == nil {
			l.Close()
		}
		if errors.Is(err, policy.ErrHashKey) != tt.refused || !tt.refused && err != nil {
			t.Errorf("%s: %v, want refused %t", name, err, tt.refused)
		}
		if tt.refused && !strings.Contains(err.Error(), `delete the key "shop:doc:hash-key"`) {
			t.Errorf("%s: %v names no remedy", name, err)
		}
		if err := first.SetPolicy(matcher(t, tt.second)); errors.Is(err, policy.ErrHashKey) != tt.refused {
			t.Errorf("%s: set policy: %v, want refused %t", name, err, tt.refused)
		}
		if err := first.SetPolicy(matcher(t, tt.first)); err != nil {
			t.Errorf("%s: set the first policy again: %v", name, err)
		}
	}
}

// TestNewLimiter_AfterALostSecret proves that a new secret replaces a lost one without an error.
func TestNewLimiter_AfterALostSecret(t *testing.T) {
	r := proctest.StartRedis(t)
	newLimiter(t, "redis://"+r.Addr, "")
	if _, err := r.Do("DEL", "mete:secret"); err != nil {
		t.Fatal(err)
	}
	newLimiter(t, "redis://"+r.Addr, "")
}

// TestNewLimiter_LimitsChargesInAnOutage proves that charges without a rule, such as in middleware, are decided
// in memory during an outage.
func TestNewLimiter_LimitsChargesInAnOutage(t *testing.T) {
	proxy := proctest.StartProxy(t, proctest.StartRedis(t).Addr)
	l := newLimiter(t, "redis://"+proxy.Addr, "")
	limit, err := bucket.NewLimit(2*bucket.Token, bucket.Rate{Tokens: bucket.Token, Per: 1000 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	proxy.Refuse(true)
	proxy.CutNow()
	admitted := 0
	for range 10 {
		d, err := l.Take(t.Context(), mete.Request{Charges: []mete.Charge{{Key: "route", Limit: limit, Cost: 1}}})
		if err != nil || !d.Degraded {
			t.Fatalf("take without Redis: %+v, %v", d, err)
		}
		if d.Allowed {
			admitted++
		}
	}
	if admitted != 2 {
		t.Errorf("admitted %d of a limit of 2", admitted)
	}
}

// TestNode_NewLimiterEndsWithItsContext proves that NewLimiter ends with its context if Redis stops answering
// after the connection.
func TestNode_NewLimiterEndsWithItsContext(t *testing.T) {
	proxy := proctest.StartProxy(t, proctest.StartRedis(t).Addr)
	node, err := redisstore.Open(t.Context(), "redis://"+proxy.Addr+"?timeout=1h")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { node.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, key := range []string{"", "mine"} {
		if _, err := node.NewLimiter(ctx, matcher(t, key), mete.Config{}); !errors.Is(err, context.Canceled) {
			t.Errorf("key %q: %v, want %v", key, err, context.Canceled)
		}
	}
}
