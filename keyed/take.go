// SPDX-License-Identifier: Apache-2.0

package keyed

import (
	"context"
	"math"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// Allow takes one token from key's bucket and returns true, or takes nothing and returns false. It does not
// allocate. If the limit has a queue, the work may have to start later: see [Limiter.Take].
func (l *Limiter) Allow(key string) bool {
	v, _ := l.take(key, bucket.Token)
	return v.Allowed()
}

// Take takes cost tokens from key's bucket, or none. The snapshot contains Allowed, the wait until the next
// attempt (RetryAfter), and the remaining tokens. Take does not allocate. If the limit has a queue, the
// snapshot's Wait is the time until the work may start.
func (l *Limiter) Take(key string, cost int) bucket.Snapshot {
	var snap bucket.Snapshot
	limit, c := l.limitFor(key), tokens(cost)
	v, now := l.take(key, c)
	v.Show(&snap, &limit, c, now)
	return snap
}

// take implements Allow and Take. The store never fails.
func (l *Limiter) take(key string, cost bucket.Tokens) (bucket.Verdict, bucket.Instant) {
	if l.perKey {
		limit := l.limit.ForKey(key)
		return l.store.TakeOne(key, &limit, cost)
	}
	return l.store.TakeOne(key, &l.limit, cost)
}

// TakeUpTo takes the available whole tokens of key's bucket, between one and cost: the snapshot's Cost is their
// number. Without a whole token, it takes a place in the limit's queue (see [Limiter.Take]), or denies if
// there is no free place.
func (l *Limiter) TakeUpTo(key string, cost int) bucket.Snapshot {
	return l.takeMode(key, cost, mete.Mode{UpTo: true})
}

// Peek returns the result of [Limiter.Take] without taking. Another caller may take the tokens first.
func (l *Limiter) Peek(key string, cost int) bucket.Snapshot {
	return l.takeMode(key, cost, mete.Mode{DryRun: true})
}

func (l *Limiter) takeMode(key string, cost int, mode mete.Mode) bucket.Snapshot {
	var one [1]bucket.Snapshot
	charges := [...]store.Charge{l.charge(key, cost)}
	snaps, _, err := l.store.Take(context.Background(), one[:0], charges[:], mode)
	if err != nil {
		return bucket.Snapshot{RetryAfter: bucket.Never} // the store never fails
	}
	return snaps[0]
}

// Refund returns cost tokens to key's bucket, up to its capacity. A cost below 0 does nothing. It is for
// admins: it also returns tokens that have refilled since the take, so the client may exceed its limit. For
// work that did not happen, use [Limiter.Reserve] and cancel the reservation.
func (l *Limiter) Refund(key string, cost int) {
	refunds := [...]mete.Refund{{Charge: l.charge(key, max(cost, 0))}}
	refunds[0].Cost = min(refunds[0].Cost, bucket.MaxTokens)
	_ = l.store.Refund(context.Background(), refunds[:], "") // never fails
}

// Reset fills key's bucket.
func (l *Limiter) Reset(key string) {
	_ = l.store.Reset(context.Background(), []string{key}) // never fails
}

func (l *Limiter) charge(key string, cost int) store.Charge {
	return store.Charge{Key: key, Limit: l.limitFor(key), Cost: tokens(cost)}
}

func (l *Limiter) limitFor(key string) bucket.Limit {
	if l.perKey {
		return l.limit.ForKey(key)
	}
	return l.limit
}

// tokens converts n whole tokens. The result exceeds every bucket if n is too large.
func tokens(n int) bucket.Tokens {
	if n > int(math.MaxInt/bucket.Token) {
		return math.MaxInt64
	}
	if n < 0 {
		return -bucket.Token
	}
	return bucket.Tokens(n) * bucket.Token
}
