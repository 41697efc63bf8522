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

// A Limiter decides requests by a policy, with its buckets in a store. It is safe for concurrent use. It starts
// goroutines in [Reservation.FinishSoon] and [Slots.ReleaseSoon], and to release slots after a canceled take. Use [New]: the
// zero Limiter is not usable.
type Limiter struct {
	store   Store
	sharded *shards.Store       // wraps store, for charges with shards
	joins   store.Transactional // nil if the store joins no transactions
	config  Config
	policy  atomic.Pointer[policy.Matcher]
	queues  queues

	memory *seen.Memory     // recent store answers; nil without Config.Local and Config.DenyFor
	outage *outage.Fallback // nil without Config.Local
	close  func() error
	counts counts
	secret secret
}

// New returns a limiter that keeps its buckets in s and decides by m. The store is required. Without a policy, only
// [Request.Charges] limit requests. If m has a rule with on_store_error: local, [Config.Local] is required.
//
// If m hashes parts of bucket keys without a [policy.Options.HashKey], New derives the key from the store's
// secret, as [Limiter.HashKey] does. Processes that share the store then share their buckets. New fails if the
// store has no secret or does not answer.
func New(s Store, m *policy.Matcher, config Config) (*Limiter, error) {
	if s == nil {
		return nil, fmt.Errorf("mete: new: %w: create one with memstore.New, redisstore.Open or pgstore.Open", store.ErrRequired)
	}
	if err := config.complete(); err != nil {
		return nil, fmt.Errorf("mete: new: %w", err)
	}
	l := &Limiter{store: s, sharded: shards.New(s, nil), config: config}
	m, err := l.preparePolicy(m)
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

// now returns the time that decides which overrides are active.
func (l *Limiter) now() bucket.Instant {
	if l.config.Now != nil {
		return l.config.Now()
	}
	return bucket.At(time.Now())
}

func (l *Limiter) Store() Store { return l.store }

// Policy returns the active policy, or nil if there is none. Use it to compute bucket keys: it has the hash key
// that the policy passed to [New] may lack.
func (l *Limiter) Policy() *policy.Matcher { return l.policy.Load() }

// SetPolicy replaces the policy atomically: every request is decided by one policy, and buckets keep their state. A
// policy can be replaced but not removed. A policy with on_store_error: local requires [Config.Local].
func (l *Limiter) SetPolicy(m *policy.Matcher) error {
	if m == nil {
		return fmt.Errorf("mete: set policy: %w", policy.ErrRequired)
	}
	m, err := l.preparePolicy(m)
	if err != nil {
		return fmt.Errorf("mete: set policy: %w", err)
	}
	l.policy.Store(m)
	return nil
}

// secretTimeout bounds the store call of [New], [Limiter.SetPolicy] and [Limiter.HashKey].
const secretTimeout = 10 * time.Second

// A secret caches the hash key that comes from the store.
type secret struct {
	mu      sync.Mutex // guards the fields below; held during the store call
	key     []byte     // nil until the first store call
	checked string     // the identifier of a key that matched the store's
}

// checkHashKey returns an error if other processes of the store use another hash key than m, or if the store
// does not answer. With different keys, each process would admit the whole limit.
func (l *Limiter) checkHashKey(m *policy.Matcher) error {
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
		return fmt.Errorf("check the hash key of the store's other processes: %w; try again when the store answers", err)
	}
	l.secret.checked = id
	return nil
}

// Close releases the resources of the limiter by calling [Config.OnClose]. For a limiter of
// redisstore.NewLimiter or pgstore.NewLimiter, it stops recovery and closes the connections. Without OnClose it
// does nothing. Later calls return the same error.
func (l *Limiter) Close() error { return l.close() }

// HashKey returns the key that hashes parts of bucket keys, for programs that hash parts of their own keys. The
// limiter derives it from the store's secret, so all processes that share the store get the same key. The
// limiter calls the store once.
//
// HashKey fails if the store neither is a [store.KeyDeriver] nor wraps one. A random key would give each
// process its own buckets, full again after each restart.
func (l *Limiter) HashKey() ([]byte, error) {
	l.secret.mu.Lock()
	defer l.secret.mu.Unlock()
	if l.secret.key != nil {
		return bytes.Clone(l.secret.key), nil
	}
	deriver, ok := store.As[store.KeyDeriver](l.store)
	if !ok {
		return nil, fmt.Errorf("%w: store %T has no secret for hash keys, and processes that share the store need the same key: "+
			"set HashKey (for a policy: policy.Options.HashKey), or add a method DeriveKey to the store (Unwrap if it wraps another store)", store.ErrNoSecret, l.store)
	}
	ctx, cancel := context.WithTimeout(context.Background(), secretTimeout)
	defer cancel()
	key, err := deriver.DeriveKey(ctx, policy.HashPurpose)
	if err != nil {
		return nil, fmt.Errorf("read the store's secret: %w; try again when the store answers, or set HashKey (for a policy: policy.Options.HashKey)", err)
	}
	l.secret.key = key[:]
	return bytes.Clone(l.secret.key), nil
}

// preparePolicy returns m with its hash key. It rejects a policy that the limiter's settings do not support,
// instead of failing at the next outage.
func (l *Limiter) preparePolicy(m *policy.Matcher) (*policy.Matcher, error) {
	if m == nil {
		return nil, nil
	}
	for _, r := range m.Rules() {
		if l.config.Local == nil && r.OnStoreError == policy.OnStoreErrorLocal && r.Mode < policy.ModeShadow {
			return nil, fmt.Errorf("rule %q: on_store_error: local requires Config.Local", r.Name)
		}
	}
	if m.NeedsHashKey() {
		key, err := l.HashKey()
		if err != nil {
			return nil, fmt.Errorf("policy hashes parts of bucket keys: %w", err)
		}
		m = m.WithHashKey(key)
	}
	return m, l.checkHashKey(m)
}

// counts holds the [Stats] that the limiter counts itself.
type counts struct {
	open, closed, local atomic.Uint64
	through             atomic.Int64
	finishing           atomic.Int64 // requests that FinishSoon settles
}
