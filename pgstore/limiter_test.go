// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// shared returns the URL of a new schema on the shared server.
func shared(t *testing.T) string {
	t.Helper()
	return with(proctest.PostgresURL(t), "schema="+proctest.PostgresSchema(t))
}

// proxied returns a proxy for a server, and a limiter that uses it.
func proxied(t *testing.T, server *proctest.Postgres) (*proctest.Proxy, *mete.Limiter) {
	t.Helper()
	proxy := proctest.StartProxy(t, server.Addr)
	url := strings.Replace(server.URL(), server.Addr, proxy.Addr, 1)
	return proxy, newLimiter(t, url+"&durable=true&timeout=10s", "")
}

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
	l, err := pgstore.NewLimiter(t.Context(), url, matcher(t, key))
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

// TestNewLimiter_OfThreeProcesses proves that processes share limits without a configured secret: they use the
// store's.
func TestNewLimiter_OfThreeProcesses(t *testing.T) {
	t.Parallel()
	prepare := func() string { return with(shared(t), "prefix=shop:&timeout=1m") }
	results := proctest.RunAgain(t, 3, prepare, func(url string) string {
		l, admitted := newLimiter(t, url, ""), 0
		for range 3 {
			d := take(t, l)
			if d.Degraded {
				t.Fatalf("PostgreSQL did not answer: %+v", d)
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

// TestNewLimiter_RecoversByItself proves that PostgreSQL is charged for local takes after an outage, without any
// request.
func TestNewLimiter_RecoversByItself(t *testing.T) {
	t.Parallel()
	proxy, l := proxied(t, proctest.StartPostgres(t))
	proxy.Refuse(true)
	proxy.CutNow()
	if d := take(t, l); !d.Allowed || !d.Degraded {
		t.Fatalf("take without PostgreSQL: %+v", d)
	}
	proxy.Refuse(false)
	ctx, cancel := context.WithTimeout(t.Context(), awhile)
	defer cancel()
	if err := proctest.Poll(ctx, func(context.Context) error {
		if s := l.Stats(); s.Unsettled > 0 || s.Charged < bucket.Token*9/10 {
			return fmt.Errorf("%d keys are still to be charged, charged %v", s.Unsettled, s.Charged)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// TestNewLimiter_DividesTheLimit proves that during an outage, each of two processes admits half of the limit.
func TestNewLimiter_DividesTheLimit(t *testing.T) {
	t.Parallel()
	server := proctest.StartPostgres(t)
	newLimiter(t, server.URL()+"&durable=true&timeout=10s", "")
	proxy, l := proxied(t, server)
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

// TestLimiter_CloseChargesTheRest proves that Close charges the spending of an outage.
func TestLimiter_CloseChargesTheRest(t *testing.T) {
	t.Parallel()
	server := proctest.StartPostgres(t)
	proxy, l := proxied(t, server)
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
	if d := take(t, newLimiter(t, server.URL()+"&durable=true&timeout=10s", "")); d.Allowed || d.Degraded {
		t.Errorf("another process after three takes in an outage: %+v, want a denial", d)
	}
	if d := take(t, l); !d.Degraded {
		t.Errorf("take after Close: %+v, want a degraded decision", d)
	}
}

func TestNewLimiter_Errors(t *testing.T) {
	t.Parallel()
	addr := proctest.FreeAddr(t)
	m := matcher(t, "")
	for _, tt := range []struct {
		url  string
		m    *policy.Matcher
		is   error
		says string
	}{
		{"postgres://" + addr, nil, policy.ErrRequired, "policyyaml.LoadFile"},
		{"localhost:5432", m, nil, `url without "://": pgstore: url: must begin with postgres://`},
		{"http://:secret@" + addr, m, nil, `url "http://…": pgstore: url: must begin with postgres://`},
		{"postgres://a:secret@" + addr + "/x/y", m, nil, "unexpected / after the database"},
		{"postgres://a:secret@" + addr + "/x?tiemout=1s", m, nil, "tiemout"},
		{"postgres://a:secret@" + addr + "/shop", m, store.ErrUnavailable, `, database "shop": pgstore: connect: `},
		{"postgres://a:secret@" + addr + "/shop", m, store.ErrUnavailable, "start it, or correct the address"},
	} {
		l, err := pgstore.NewLimiter(t.Context(), tt.url, tt.m)
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
	t.Parallel()
	node, err := pgstore.Open(t.Context(), shared(t))
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

// TestNewLimiter_RefusesAnotherHashKey rejects a second hash key, which would double the limit.
func TestNewLimiter_RefusesAnotherHashKey(t *testing.T) {
	t.Parallel()
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
		url := with(shared(t), "prefix=shop:")
		first := newLimiter(t, url, tt.first)
		l, err := pgstore.NewLimiter(t.Context(), url, matcher(t, tt.second))
		if err == nil {
			l.Close()
		}
		if errors.Is(err, policy.ErrHashKey) != tt.refused || !tt.refused && err != nil {
			t.Errorf("%s: %v, want refused %t", name, err, tt.refused)
		}
		if tt.refused && !strings.Contains(err.Error(), `delete the row with the name "hash-key" and the prefix "shop:"`) {
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

// TestNewLimiter_LimitsChargesInAnOutage proves that charges without a rule, such as in middleware, are decided
// in memory during an outage.
func TestNewLimiter_LimitsChargesInAnOutage(t *testing.T) {
	t.Parallel()
	proxy, l := proxied(t, proctest.StartPostgres(t))
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
			t.Fatalf("take without PostgreSQL: %+v, %v", d, err)
		}
		if d.Allowed {
			admitted++
		}
	}
	if admitted != 2 {
		t.Errorf("admitted %d of a limit of 2", admitted)
	}
}
