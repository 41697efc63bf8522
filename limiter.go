// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync/atomic"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

// A Limiter decides requests by a policy, with its buckets in a store. It is
// safe for concurrent use, starts no goroutine and needs no Close. It is made by
// [New]; the zero Limiter is of no use.
type Limiter struct {
	given  Store         // by the caller
	store  Store         // resolves shards
	joins  transactional // nil where the store joins no transactions
	config Config
	policy atomic.Pointer[policy.Matcher]
	queues queues

	fallback *fallback // nil without Config.Local
	counts   counts
	watches  watches
	secret   secret
}

// New returns a limiter that keeps its buckets in store, which is required, and
// decides by m. Without a policy, requests are limited by the [Request.Charges]
// that they bring, and by nothing else. Where m has a rule that says
// on_store_error: local, [Config.Local] is required.
//
// Where m hashes parts of bucket keys and has no [policy.Options.HashKey], New asks the
// store for the key, as [Limiter.HashKey] does: the processes that share a store then
// share their buckets. It fails where the store keeps no secret, or does not answer.
func New(store Store, m *policy.Matcher, config Config) (*Limiter, error) {
	if store == nil {
		return nil, errors.New("mete: new: store is required")
	}
	if err := config.complete(); err != nil {
		return nil, fmt.Errorf("mete: new: %w", err)
	}
	l := &Limiter{given: store, store: shardStore(store), config: config}
	m, err := l.check(m)
	if err != nil {
		return nil, fmt.Errorf("mete: new: %w", err)
	}
	if config.Local != nil {
		l.fallback = newFallback(&config, l.store, &l.counts)
	}
	l.joins, _ = as[transactional](store)
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
func (l *Limiter) Store() Store { return l.given }

// Policy returns the policy in force, nil where there is none. It makes the keys of the
// buckets: the policy that [New] was given may lack the key of their hashes.
func (l *Limiter) Policy() *policy.Matcher { return l.policy.Load() }

// SetPolicy replaces the policy in one step, also while requests are decided:
// each request is decided by one policy. Buckets keep what is missing from them.
// A limiter that was made with a policy can get another, but not lose it. One that
// was made without [Config.Local] does not get a policy that needs it.
func (l *Limiter) SetPolicy(m *policy.Matcher) error {
	if m == nil {
		return errors.New("mete: set policy: policy is required")
	}
	m, err := l.check(m)
	if err != nil {
		return fmt.Errorf("mete: set policy: %w", err)
	}
	l.policy.Store(m)
	return nil
}

// Take spends the request's cost from all limits it falls under, or from none.
// A request that falls under no limit is allowed.
//
// A denial is a [Decision], not an error. An error says that the request is
// invalid or that ctx is done. A store that cannot answer is no error either:
// the decision is then what the rules say about it, and [Decision.Degraded].
func (l *Limiter) Take(ctx context.Context, req Request) (Decision, error) {
	return l.decide(ctx, &req, Mode{MaxWait: max(req.MaxWait, 0)}, nil)
}

// TakeUpTo takes what there is, in whole tokens, where there is not all of it:
// [Decision.Taken] says how much. Where there is not even one token, or all of a
// cost below one, the request is denied. It does not reserve: [Request.MaxWait]
// has no part in it. A leaky bucket lets no more than one token, or that cost
// below one, wait in its queue.
func (l *Limiter) TakeUpTo(ctx context.Context, req Request) (Decision, error) {
	return l.decide(ctx, &req, Mode{UpTo: true}, nil)
}

// Charge spends a cost that has arisen already, although the tokens may not be
// there: the bucket then owes them, and admits nothing else until they are paid
// back. A charge is denied only where the limit may not owe so much: by
// max_reserved, or the length of a queue. [Decision.Wait] says how long the debt
// lasts.
func (l *Limiter) Charge(ctx context.Context, req Request) (Decision, error) {
	return l.decide(ctx, &req, Mode{MaxWait: bucket.Forced}, nil)
}

// Peek decides as [Limiter.Take] would, and spends nothing.
func (l *Limiter) Peek(ctx context.Context, req Request) (Decision, error) {
	return l.decide(ctx, &req, Mode{MaxWait: max(req.MaxWait, 0), DryRun: true}, nil)
}

// Refund gives the request's cost back to every limit it falls under. A bucket
// never holds more than its capacity: what exceeds it is gone. A refund with an
// ID is given once within [RetryHorizon], so it can be repeated after any error. The
// ID of a take that has been refunded must not be used for another take.
//
// It falls under what the policy and its overrides say now: where these may have
// changed since the request was charged, [Limiter.Reserve] and [Reservation.Cancel]
// give back what was taken.
func (l *Limiter) Refund(ctx context.Context, req Request) error {
	return l.undo(&req, func(id string, charges []Charge) error {
		if l.fallback != nil { // what is given back may have been spent locally
			if _, err := l.fallback.recover(ctx, charges, l.config.Deadline); err != nil {
				return err
			}
		}
		refunds := make([]Refund, len(charges))
		for i := range charges {
			refunds[i].Charge = charges[i]
		}
		return l.store.Refund(ctx, refunds, id)
	})
}

// Reset makes every bucket that the request falls under full.
func (l *Limiter) Reset(ctx context.Context, req Request) error {
	return l.undo(&req, func(_ string, charges []Charge) error {
		return l.reset(ctx, charges)
	})
}

// reset makes the buckets of charges full. It also drops what was spent of them
// locally, unless the reset may be rolled back: then that is charged before it.
func (l *Limiter) reset(ctx context.Context, charges []Charge) error {
	tentative := l.tentative(ctx)
	if l.fallback != nil && tentative {
		if _, err := l.fallback.recover(ctx, charges, l.config.Deadline); err != nil {
			return err
		}
	}
	var keys []string
	for _, c := range charges {
		keys = shardKeys(keys, c.Key, c.Shards)
	}
	if err := l.store.Reset(ctx, keys); err != nil {
		return err
	}
	if l.fallback != nil && !tentative {
		l.fallback.forget(charges)
	}
	return nil
}

// undo calls f with the charges of a request, and then with those of its shadow
// rules: the keys that a request brings could be among these, too.
func (l *Limiter) undo(req *Request, f func(id string, charges []Charge) error) error {
	s, err := l.match(req)
	if err != nil {
		return err
	}
	defer s.release()
	id := ""
	if req.ID != "" {
		id = s.storeID(req.ID, Mode{})
	}
	if charges := s.charge(s.matches[:s.enforced], s.own, nil); len(charges) > 0 {
		if err := f(id, charges); err != nil {
			return err
		}
	}
	if charges := s.charge(s.matches[s.enforced:], nil, nil); len(charges) > 0 {
		return f(id, charges)
	}
	return nil
}
