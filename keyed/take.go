// SPDX-License-Identifier: Apache-2.0

package keyed

import (
	"context"
	"math"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// Allow takes one token from key's bucket and returns true, or takes nothing and
// returns false. It does not allocate.
//
// Where the limit has a queue, true may mean later: see [Limiter.Take].
func (l *Limiter) Allow(key string) bool {
	v, _ := l.take(key, bucket.Token)
	return v.Allowed()
}

// Take takes cost tokens from key's bucket, or none: the snapshot's Allowed says
// which, its RetryAfter how long to wait before asking again, its Remaining how
// much is left. It does not allocate.
//
// Where the limit has a queue, the snapshot's Wait says when the work may start.
func (l *Limiter) Take(key string, cost int) bucket.Snapshot {
	var snap bucket.Snapshot
	limit, c := l.limitFor(key), tokens(cost)
	v, now := l.take(key, c)
	v.Show(&snap, &limit, c, now)
	return snap
}

// take does the work of Allow and Take. The store never fails.
func (l *Limiter) take(key string, cost bucket.Tokens) (bucket.Verdict, bucket.Instant) {
	if l.ofKey {
		limit := l.limit.For(key)
		return l.store.TakeOne(key, &limit, cost)
	}
	return l.store.TakeOne(key, &l.limit, cost)
}

// TakeUpTo takes as many whole tokens as there are in key's bucket, at most cost
// and at least one: the snapshot's Cost says how many. If there is not one, it is
// denied or, where the limit has a queue with room for it, one is taken that is to
// wait: see [Limiter.Take].
func (l *Limiter) TakeUpTo(key string, cost int) bucket.Snapshot {
	return l.ask(key, cost, mete.Mode{UpTo: true})
}

// Peek answers as [Limiter.Take] would, and takes nothing. Another caller may be
// faster than you are: to do what it allows, take.
func (l *Limiter) Peek(key string, cost int) bucket.Snapshot {
	return l.ask(key, cost, mete.Mode{DryRun: true})
}

func (l *Limiter) ask(key string, cost int, mode mete.Mode) bucket.Snapshot {
	var one [1]bucket.Snapshot
	charges := [...]store.Charge{l.charge(key, cost)}
	snaps, _, err := l.store.Take(context.Background(), one[:0], charges[:], mode)
	if err != nil {
		return bucket.Snapshot{RetryAfter: bucket.Never} // the store never fails
	}
	return snaps[0]
}

// Refund gives cost tokens back to key's bucket, which never holds more than its
// capacity. A cost below 0 gives nothing. It is for an administrator: it
// also gives back what has refilled since, so the client may get more than its limit. For work that was not done, use [Limiter.Reserve] and cancel it.
func (l *Limiter) Refund(key string, cost int) {
	refunds := [...]mete.Refund{{Charge: l.charge(key, max(cost, 0))}}
	refunds[0].Cost = min(refunds[0].Cost, bucket.MaxTokens)
	_ = l.store.Refund(context.Background(), refunds[:], "") // never fails
}

// Reset makes key's bucket full.
func (l *Limiter) Reset(key string) {
	_ = l.store.Reset(context.Background(), []string{key}) // never fails
}

func (l *Limiter) charge(key string, cost int) store.Charge {
	return store.Charge{Key: key, Limit: l.limitFor(key), Cost: tokens(cost)}
}

func (l *Limiter) limitFor(key string) bucket.Limit {
	if l.ofKey {
		return l.limit.For(key)
	}
	return l.limit
}

// tokens are n whole tokens, or more than any bucket holds.
func tokens(n int) bucket.Tokens {
	if n > int(math.MaxInt/bucket.Token) {
		return math.MaxInt64
	}
	if n < 0 {
		return -bucket.Token
	}
	return bucket.Tokens(n) * bucket.Token
}
