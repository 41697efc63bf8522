// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/stores"
	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/guard"
	"github.com/metehq/mete/internal/follow"
	"github.com/metehq/mete/internal/recovery"
	"github.com/metehq/mete/internal/sharedkey"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

const (
	// connectTimeout is how long a starting server waits for its store, because both may be starting together.
	connectTimeout  = 10 * time.Second
	connectInterval = 250 * time.Millisecond

	recoverInterval = time.Second

	// denyFor is the lifetime of a cached denial of a shared store.
	denyFor = time.Second
)

type buckets struct {
	mete.Store // for the limiter: the opened store, or guard if the store is shared

	opened stores.Store
	kind   *stores.Kind
	url    *storeurl.URL
	log    *slog.Logger // with the store and its address
	guard  *guard.Store // nil unless the store is shared
	health *storeHealth
	local  *memstore.Store // for rules with on_store_error: local
	key    []byte          // key for the hashes in bucket keys
}

func (a *assembly) openBuckets(ctx context.Context, u *storeurl.URL) (*buckets, error) {
	b := &buckets{url: u, health: new(storeHealth), key: []byte(a.config.HashKey)}
	err := b.open(ctx, a.log)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	a.add(component{Name: "store", Start: b.opened.Start, Stop: func(context.Context) error { return b.opened.Close() }})
	b.log = a.log.With("store", string(b.kind.Scheme), "addr", u.String())
	if a.config.HashKey == "" {
		key, err := b.opened.DeriveKey(ctx, policy.HashPurpose)
		if err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
		b.key = key[:]
	}
	if b.local, err = memstore.New(memstore.Config{}); err != nil {
		return nil, err
	}
	b.Store = b.opened
	a.metrics.Add(b.opened.Metrics())
	if !b.kind.Shared {
		return b, nil
	}
	if a.config.HashKey == "" {
		b.log.Warn("hash_key not set, key derived from a secret in the store; set the same hash_key on all servers")
	}
	b.guard, err = guard.New(&timedStore{b.opened, b.opened.Documents(), a.metrics, b.health}, guard.Config{OnChange: b.breakerChanged})
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	b.Store = b.guard
	b.log.Info("store connected", "nodes", b.opened.Nodes())
	return b, nil
}

// open opens the store. It retries while the store does not answer.
func (b *buckets) open(ctx context.Context, log *slog.Logger) error {
	failed := limitErrors(log, "store unreachable, trying again", "addr", b.url.String())
	return retryUnavailable(ctx, failed, func(ctx context.Context) (err error) {
		b.opened, b.kind, err = stores.Open(ctx, b.url, stores.Options{Log: log})
		return err
	})
}

// retryUnavailable calls open again while its error is that the store does not answer, for at most connectTimeout.
// It reports each of these errors to failed.
func retryUnavailable(ctx context.Context, failed func(error), open func(context.Context) error) error {
	waiting, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	ticker := time.NewTicker(connectInterval)
	defer ticker.Stop()
	var before error
	for {
		err := open(waiting)
		if before != nil && waiting.Err() != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			err = before // keep the error with the cause
		}
		before = err
		if err == nil || !errors.Is(err, store.ErrUnavailable) {
			return err
		}
		failed(err)
		select {
		case <-waiting.Done():
			return err
		case <-ticker.C:
		}
	}
}

// keyFor derives a key for one purpose. Servers with the same hash_key derive the same key, so that their hashes
// and their jitter agree.
func (b *buckets) keyFor(purpose string) []byte {
	key := sharedkey.Derive(purpose, string(b.key))
	return key[:]
}

func (b *buckets) breakerChanged(from, to guard.State) {
	if from == guard.StateClosed || to == guard.StateClosed { // ignore half-open, which is part of the same outage
		b.health.outage.Store(time.Now().UnixNano())
	}
	switch {
	case to == guard.StateOpen && from == guard.StateClosed:
		b.log.Error("circuit breaker opened", "err", b.health.lastError(), "effect", "each rule follows its on_store_error")
	case to == guard.StateClosed:
		b.log.Info("circuit breaker closed")
	}
}

// recovery returns the component that charges tokens to a shared store that were spent locally during an outage.
func (b *buckets) recovery(limiter *mete.Limiter) component {
	c := background("recovery of the store", func(ctx context.Context) {
		follow.Every(ctx, recoverInterval, func() {
			b.probe(ctx)
			_ = limiter.Recover(ctx) // retried in the next interval
		})
	})
	stop := c.Stop
	c.Stop = func(ctx context.Context) error {
		err := stop(ctx)
		if err := recovery.ChargeRest(limiter); err != nil {
			b.log.Warn("tokens spent during the outage not charged", "err", err, "keys", limiter.Stats().Unsettled)
		}
		return err
	}
	c.Health = func(ctx context.Context) error { return b.checkReady(ctx, limiter.Policy()) }
	return c
}

// probe takes from a dedicated bucket while the breaker is not closed. Without traffic, nothing else would notice
// that the store answers again.
func (b *buckets) probe(ctx context.Context) {
	limit, err := bucket.NewLimit(bucket.Token, bucket.Rate{Tokens: bucket.Token, Per: time.Second})
	if err != nil {
		return
	}
	charges := []store.Charge{{Key: policy.OwnKeyPrefix("probe"), Limit: limit, Cost: 1}}
	for range guard.DefaultProbes {
		if b.guard.State() == guard.StateClosed {
			return
		}
		if _, _, err := b.guard.Take(ctx, nil, charges, mete.Mode{Within: policy.DefaultDeadline}); err != nil {
			return
		}
	}
}

var errStoreDown = errors.New("the store does not answer")

// checkReady returns errStoreDown if the store does not answer and an enforced rule has on_store_error: closed. For
// other rules the server stays ready, because all servers share the store.
func (b *buckets) checkReady(ctx context.Context, m *policy.Matcher) error {
	if b.guard.Ping(ctx) == nil {
		return nil
	}
	for _, rule := range m.Rules() {
		if rule.OnStoreError == policy.OnStoreErrorClosed && rule.Mode < policy.ModeShadow {
			return errStoreDown
		}
	}
	return nil
}

// Texts of the dashboard about the store.
const (
	downWords = "The store does not answer. Each rule follows its on_store_error."
	halfWords = "The server is testing whether the store answers again."
	fullWords = "The store is full: new keys share one bucket per limit. Raise max_keys."
)

func (b *buckets) state() api.StoreState {
	nodes := b.opened.Nodes()
	s := api.StoreState{Kind: string(b.kind.Scheme), Address: b.url.String(), State: "ok", Breaker: "none", Nodes: &nodes}
	if m, ok := b.opened.(*stores.Memory); ok {
		keys := m.Stats().Keys
		s.Buckets = &keys
	}
	if b.health.isFull() {
		s.State, s.Detail = "degraded", fullWords
	}
	if !b.kind.Shared {
		return s
	}
	state := b.guard.Stats().State
	s.Breaker, s.Since = string(state), b.health.since()
	switch state {
	case guard.StateOpen:
		s.State, s.Detail = "down", downWords
	case guard.StateHalfOpen:
		s.State, s.Detail = "degraded", halfWords
	}
	return s
}
