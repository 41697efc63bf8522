// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/outage"
	"github.com/metehq/mete/internal/seen"
	"github.com/metehq/mete/internal/shards"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// A Limiter decides requests by a policy, with its buckets in a store. It is
// safe for concurrent use and starts no goroutine. It is made by [New]; the zero Limiter is
// of no use.
type Limiter struct {
	store   Store
	sharded *shards.Store       // over store, for charges with shards
	joins   store.Transactional // nil where the store joins no transactions
	config  Config
	policy  atomic.Pointer[policy.Matcher]
	queues  queues

	memory *seen.Memory     // of what the store showed; nil without Config.Local and Config.DenyFor
	outage *outage.Fallback // nil without Config.Local
	close  func() error
	counts counts
	secret secret
}

// New returns a limiter that keeps its buckets in s, which is required, and
// decides by m. Without a policy, requests are limited by the [Request.Charges]
// that they bring, and by nothing else. Where m has a rule that says
// on_store_error: local, [Config.Local] is required.
//
// Where m hashes parts of bucket keys and has no [policy.Options.HashKey], New asks the
// store for the key, as [Limiter.HashKey] does: the processes that share a store then
// share their buckets. It fails where the store keeps no secret, or does not answer.
func New(s Store, m *policy.Matcher, config Config) (*Limiter, error) {
	if s == nil {
		return nil, fmt.Errorf("mete: new: %w: make one with memstore.New, redisstore.Open or pgstore.Open", store.ErrRequired)
	}
	if err := config.complete(); err != nil {
		return nil, fmt.Errorf("mete: new: %w", err)
	}
	l := &Limiter{store: s, sharded: shards.New(s, nil), config: config}
	m, err := l.check(m)
	if err != nil {
		return nil, fmt.Errorf("mete: new: %w", err)
	}
	if config.Local != nil || config.DenyFor > 0 {
		l.memory = seen.New(seen.Config{
			Local: config.Local != nil, DenyFor: config.DenyFor, DenyKeys: config.DenyKeys, DenyExactly: config.DenyExactly, Now: config.Now,
		})
	}
	if config.Local != nil {
		l.outage = outage.New(config.Local, l.sharded, config.Nodes, l.memory)
	}
	l.close = sync.OnceValue(func() error {
		if config.OnClose == nil {
			return nil
		}
		return config.OnClose()
	})
	l.joins, _ = store.As[store.Transactional](s)
	l.queues.seed = maphash.MakeSeed()
	l.policy.Store(m)
	return l, nil
}

// now is the time at which overrides are in force or not.
func (l *Limiter) now() bucket.Instant {
	if l.config.Now != nil {
		return l.config.Now()
	}
	return bucket.At(time.Now())
}

// Store returns the limiter's store.
func (l *Limiter) Store() Store { return l.store }

// Policy returns the policy in force, nil where there is none. It makes the keys of the
// buckets: the policy that [New] was given may lack the key of their hashes.
func (l *Limiter) Policy() *policy.Matcher { return l.policy.Load() }

// SetPolicy replaces the policy in one step, also while requests are decided:
// each request is decided by one policy. Buckets keep what is missing from them.
// A limiter that was made with a policy can get another, but not lose it. One that
// was made without [Config.Local] does not get a policy that needs it.
func (l *Limiter) SetPolicy(m *policy.Matcher) error {
	if m == nil {
		return fmt.Errorf("mete: set policy: %w", policy.ErrRequired)
	}
	m, err := l.check(m)
	if err != nil {
		return fmt.Errorf("mete: set policy: %w", err)
	}
	l.policy.Store(m)
	return nil
}

// secretTimeout bounds how long [New], [Limiter.SetPolicy] and [Limiter.HashKey] wait for
// the store's secret.
const secretTimeout = 10 * time.Second

// A secret is what a limiter knows of its store's secret.
type secret struct {
	mu      sync.Mutex // guards the fields below, and is held while the store is asked
	key     []byte     // nil until the store has been asked
	checked string     // the identifier of a key that the store has found right
}

// checkKey returns an error if the store's other processes hash with another key than m, or
// if the store does not answer: with another key, the process would admit too much for ever.
func (l *Limiter) checkKey(m *policy.Matcher) error {
	checker, ok := store.As[store.KeyChecker](l.store)
	id := m.HashKeyID()
	if !ok || id == "" {
		return nil
	}
	l.secret.mu.Lock()
	defer l.secret.mu.Unlock()
	if id == l.secret.checked {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), secretTimeout)
	defer cancel()
	err := checker.CheckHashKey(ctx, id)
	switch {
	case errors.Is(err, policy.ErrHashKey):
		return err
	case err != nil:
		return fmt.Errorf("ask the store for the key of its other processes: %w; try again when the store answers", err)
	}
	l.secret.checked = id
	return nil
}

// Close ends what came with the limiter: for one that redisstore.NewLimiter or
// pgstore.NewLimiter made, recovery and connections. Of other limiters it does what
// [Config.OnClose] says, and nothing without it. A second Close returns the same error.
func (l *Limiter) Close() error { return l.close() }

// HashKey returns the key that hashes parts of bucket keys: for a program that hashes
// parts of keys of its own. The limiter derives it from the secret of its store, which is
// the same in all processes that share the store. It asks the store once.
//
// It fails where the store is no [store.KeyDeriver], and wraps none: a key made at random would
// give each process, and each restart, full buckets of its own.
func (l *Limiter) HashKey() ([]byte, error) {
	l.secret.mu.Lock()
	defer l.secret.mu.Unlock()
	if l.secret.key != nil {
		return bytes.Clone(l.secret.key), nil
	}
	deriver, ok := store.As[store.KeyDeriver](l.store)
	if !ok {
		return nil, fmt.Errorf("%w: store %T keeps no secret for that, and processes that share it need the same key: "+
			"set HashKey (for a policy: policy.Options.HashKey), or give the store a method DeriveKey, or Unwrap if it wraps another store", store.ErrNoSecret, l.store)
	}
	ctx, cancel := context.WithTimeout(context.Background(), secretTimeout)
	defer cancel()
	key, err := deriver.DeriveKey(ctx, policy.HashPurpose)
	if err != nil {
		return nil, fmt.Errorf("ask the store for its secret: %w; try again when the store answers, or set HashKey (for a policy: policy.Options.HashKey)", err)
	}
	l.secret.key = key[:]
	return bytes.Clone(l.secret.key), nil
}

// check returns the policy by which the limiter decides: m, with the key of its hashes.
// The error says why it cannot: better now than when the store first fails.
func (l *Limiter) check(m *policy.Matcher) (*policy.Matcher, error) {
	if m == nil {
		return nil, nil
	}
	for _, r := range m.Rules() {
		if l.config.Local == nil && r.OnStoreError == policy.StoreErrorLocal && r.Mode < policy.ModeShadow {
			return nil, fmt.Errorf("rule %q says on_store_error: local: set Config.Local", r.Name)
		}
	}
	if m.NeedsHashKey() {
		key, err := l.HashKey()
		if err != nil {
			return nil, fmt.Errorf("policy hashes parts of bucket keys: %w", err)
		}
		m = m.WithHashKey(key)
	}
	return m, l.checkKey(m)
}

// counts are those [Stats] that the limiter itself counts, as they grow.
type counts struct {
	open, closed, local atomic.Uint64
	through             atomic.Int64
}
