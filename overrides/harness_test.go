// SPDX-License-Identifier: Apache-2.0

package overrides_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testkit"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/overrides"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// rules give each key 2 tokens, and everybody together 1000.
const rules = `{"rules": [
	{"name": "free", "limit_keys": ["header:x-api-key"], "algorithm": "token_bucket", "algorithm_config": {"rate": "1/1d", "burst": 2}},
	{"name": "all", "limit_keys": [], "algorithm": "token_bucket", "algorithm_config": {"rate": "1/1d", "burst": 1000}}]}`

// A clock stands still until it is moved.
type clock struct{ micros atomic.Int64 }

func newClock() *clock {
	c := new(clock)
	c.micros.Store(1_700_000_000_000_000)
	return c
}

func (c *clock) now() time.Time          { return time.UnixMicro(c.micros.Load()).UTC() }
func (c *clock) instant() bucket.Instant { return bucket.Instant(c.micros.Load()) }
func (c *clock) advance(d time.Duration) { c.micros.Add(d.Microseconds()) }

// A node is a process with a limiter, and overrides that it may share with others.
type node struct {
	*overrides.Manager
	t       *testing.T
	limiter *mete.Limiter
	log     *testkit.Log
	clock   *clock
}

func load(t *testing.T, text string) *policy.Matcher {
	t.Helper()
	m, err := policy.Load([]byte(text), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func newStore(t *testing.T, c *clock) *memstore.Store {
	t.Helper()
	s, err := memstore.New(memstore.Config{Now: c.instant})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// newNode returns one whose overrides are in documents.
func newNode(t *testing.T, c *clock, documents store.Documents, text string) *node {
	t.Helper()
	base := load(t, text)
	limiter, err := mete.New(newStore(t, c), base, mete.Config{Now: c.instant})
	if err != nil {
		t.Fatal(err)
	}
	n := &node{t: t, limiter: limiter, log: new(testkit.Log), clock: c}
	n.Manager, err = overrides.New(base, overrides.Config{
		Documents: documents, Apply: limiter.SetPolicy, Now: c.instant, Logger: slog.New(slog.NewTextHandler(n.log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// refresh does one poll of Follow.
func (n *node) refresh() {
	n.t.Helper()
	if err := n.Load(n.t.Context()); err != nil {
		n.t.Fatal(err)
	}
}

// put creates an override, for an hour by default.
func (n *node) put(o policy.Override) overrides.Status {
	n.t.Helper()
	if o.Reason == "" {
		o.Reason = "test"
	}
	if o.Author == "" {
		o.Author = "kim"
	}
	if o.ExpiresAt.IsZero() {
		o.ExpiresAt = n.clock.now().Add(time.Hour)
	}
	s, err := n.Put(n.t.Context(), o)
	if err != nil {
		n.t.Fatalf("Put(%+v): %v", o, err)
	}
	return s
}

func (n *node) take(key string) mete.Decision {
	n.t.Helper()
	d, err := n.limiter.Take(context.Background(), mete.Request{Attributes: mete.Attrs{"header:x-api-key": key}})
	if err != nil {
		n.t.Fatal(err)
	}
	return d
}

// wantTakes takes one token each time.
func (n *node) wantTakes(what, key string, want ...bool) {
	n.t.Helper()
	for i, w := range want {
		if d := n.take(key); d.Allowed != w {
			n.t.Errorf("%s: take %d of %s: allowed %t (%s), want %t", what, i, key, d.Allowed, d.Reason, w)
		}
	}
}

// block is about one key.
func block(id, key string) policy.Override {
	return policy.Override{ID: id, Action: policy.ActionBlock, Match: of(key)}
}

func of(key string) json.RawMessage { return json.RawMessage(`{"header:x-api-key": "` + key + `"}`) }

// raise lets a key have more.
func raise(id, key string) policy.Override {
	return policy.Override{ID: id, Action: policy.ActionLimit, Rules: []string{"free"}, Match: of(key),
		Algorithm: "token_bucket", Config: json.RawMessage(`{"rate": "1/1d", "burst": 4}`)}
}

// states returns the states of all overrides by ID.
func (n *node) states() map[string]overrides.State {
	all := map[string]overrides.State{}
	for _, s := range n.List() {
		all[s.ID] = s.State
	}
	return all
}
