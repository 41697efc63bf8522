// SPDX-License-Identifier: Apache-2.0

package keyed

import (
	"context"
	"math"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
)

// Allow takes one token from key's bucket and returns true, or takes nothing and
// returns false. It does not allocate.
//
// Where the limit has a queue, true may mean later: see [Limiter.Take].
func (l *Limiter) Allow(key string) bool {
	return l.take(key, bucket.Token).Allowed()
}

// Take takes cost tokens from key's bucket, or none: the snapshot's Allowed says
// which, its RetryAfter how long to wait before asking again, its Remaining how
// much is left. It does not allocate.
//
// Where the limit has a queue, the snapshot's Wait says when the work may start.
func (l *Limiter) Take(key string, cost int) bucket.Snapshot {
	var snap bucket.Snapshot
	limit, c := l.limitFor(key), tokens(cost)
	l.take(key, c).Show(&snap, &limit, c)
	return snap
}

// take does the work of Allow and Take. The store could fail only if it had seen
// too many different rates, and it has seen one.
func (l *Limiter) take(key string, cost bucket.Tokens) bucket.Verdict {
	if l.ofKey {
		limit := l.limit.For(key)
		v, _ := l.store.TakeOne(key, &limit, cost)
		return v
	}
	v, _ := l.store.TakeOne(key, &l.limit, cost)
	return v
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
	charges := [...]mete.Charge{l.charge(key, cost)}
	snaps, _, err := l.store.Take(context.Background(), one[:0], charges[:], mode)
	if err != nil {
		return bucket.Snapshot{RetryAfter: bucket.Never} // cannot be: see take
	}
	return snaps[0]
}

// Refund gives cost tokens back to key's bucket, which never holds more than its
// capacity. A cost below 0 gives nothing.
func (l *Limiter) Refund(key string, cost int) {
	charges := [...]mete.Charge{l.charge(key, max(cost, 0))}
	charges[0].Cost = min(charges[0].Cost, bucket.MaxTokens)
	_ = l.store.Refund(context.Background(), charges[:]) // fails only as Take does
}

// Reset makes key's bucket full.
func (l *Limiter) Reset(key string) {
	_ = l.store.Reset(context.Background(), []string{key}) // fails only as Take does
}

func (l *Limiter) charge(key string, cost int) mete.Charge {
	return mete.Charge{Key: key, Limit: l.limitFor(key), Cost: tokens(cost)}
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
