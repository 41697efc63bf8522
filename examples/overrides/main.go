// SPDX-License-Identifier: Apache-2.0

// This program blocks a client, unblocks it, and raises the limit of another one while two limiters run. The limiters
// share a store, like two servers, so overrides made on one also apply on the other.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"log/slog"
	"strings"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/overrides"
	"github.com/metehq/mete/policy"
)

const rules = `{"rules": [{"name": "free", "limit_keys": ["header:x-api-key"], "rate": "1/1h", "burst": 2}]}`

// A server combines the policy with the overrides in its store.
type server struct {
	limiter   *mete.Limiter
	overrides *overrides.Manager
}

func newServer(ctx context.Context, store *memstore.Store) (*server, error) {
	base, err := policy.Load([]byte(rules), policy.Options{})
	if err != nil {
		return nil, err
	}
	limiter, err := mete.New(store, base, mete.Config{})
	if err != nil {
		return nil, err
	}
	manager, err := overrides.New(base, overrides.Config{Documents: store, Apply: limiter.SetPolicy, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	return &server{limiter, manager}, manager.Load(ctx) // a long-running server also calls Follow
}

// takeThree makes three requests. It returns the number of allowed ones and the reason of the last denial.
func (s *server) takeThree(ctx context.Context, key string) (n int, why string, err error) {
	for range 3 {
		d, err := s.limiter.Take(ctx, mete.Request{Attributes: mete.Attrs{"header:x-api-key": key}})
		if err != nil {
			return 0, "", err
		}
		if d.Allowed {
			n++
		} else {
			why = d.Reason
		}
	}
	return n, why, nil
}

func run(ctx context.Context) error {
	store, err := memstore.New(memstore.Config{}) // use redisstore or pgstore in production
	if err != nil {
		return err
	}
	a, err := newServer(ctx, store)
	if err != nil {
		return err
	}
	b, err := newServer(ctx, store)
	if err != nil {
		return err
	}
	show := func(s *server, key string) error {
		n, why, err := s.takeThree(ctx, key)
		fmt.Println(strings.TrimSpace(fmt.Sprintf("%s: %d of 3 allowed %s", key, n, why)))
		return err
	}

	blocked, err := a.overrides.Put(ctx, policy.Override{
		Action: policy.ActionBlock, Match: json.RawMessage(`{"header:x-api-key": "scraper"}`),
		Reason: "downloads the whole catalog", Author: "kim", ExpiresAt: time.Now().Add(2 * time.Hour),
	})
	if err != nil {
		return err
	}
	_, err = a.overrides.Put(ctx, policy.Override{
		Action: policy.ActionLimit, Rules: []string{"free"}, Match: json.RawMessage(`{"header:x-api-key": "partner"}`),
		Algorithm: "token_bucket", Config: json.RawMessage(`{"rate": "1/1h", "burst": 100}`),
		Reason: "moves their data", Author: "kim", ExpiresAt: time.Now().Add(24 * time.Hour),
	})
	if err != nil {
		return err
	}
	if err := b.overrides.Load(ctx); err != nil { // Follow does this every second
		return err
	}
	for _, key := range []string{"scraper", "partner", "anybody"} {
		if err := show(b, key); err != nil {
			return err
		}
	}

	if err := b.overrides.Remove(ctx, blocked.ID, "lee", "they have stopped"); err != nil {
		return err
	}
	if err := show(b, "scraper"); err != nil {
		return err
	}
	for _, e := range b.overrides.Audit() {
		fmt.Printf("%s by %s: %s\n", e.Kind, e.Author, e.Reason)
	}
	return nil
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}
