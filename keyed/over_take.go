// SPDX-License-Identifier: Apache-2.0

package keyed

import (
	"context"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
)

// Allow takes one token from key's bucket and returns true, or takes nothing and returns false. If the store
// does not answer, it returns false and the store's error: the caller decides whether to continue. [mete.Spent]
// of the error reports whether the token may have been taken.
func (s *Shared) Allow(ctx context.Context, key string) (bool, error) {
	snap, err := s.Take(ctx, key, 1)
	return snap.Allowed, err
}

// Take takes cost tokens from key's bucket, or none. The snapshot's Allowed, RetryAfter and Remaining are as in
// [Limiter.Take]. With an error, the snapshot is a denial. The error is [mete.ErrCost] for a cost below 0.
func (s *Shared) Take(ctx context.Context, key string, cost int) (bucket.Snapshot, error) {
	return s.snapshotOf(s.limiter.Take(ctx, s.request(key, cost)))
}

// TakeUpTo takes the available whole tokens of key's bucket, between one and cost: the snapshot's Cost is their
// number. If there is none, it denies.
func (s *Shared) TakeUpTo(ctx context.Context, key string, cost int) (bucket.Snapshot, error) {
	return s.snapshotOf(s.limiter.TakeUpTo(ctx, s.request(key, cost)))
}

// Peek returns the result of [Shared.Take] without taking.
func (s *Shared) Peek(ctx context.Context, key string, cost int) (bucket.Snapshot, error) {
	return s.snapshotOf(s.limiter.Peek(ctx, s.request(key, cost)))
}

// Wait takes cost tokens from key's bucket and sleeps until they are available, like [Limiter.Wait]. Callers of
// one process are served in order. The errors are the same, plus the store's.
func (s *Shared) Wait(ctx context.Context, key string, cost int) error {
	d, err := s.limiter.Wait(ctx, s.request(key, cost))
	if d.Degraded {
		return d.Err
	}
	return err
}

// Reserve takes cost tokens from key's bucket if they become available within longest, without sleeping: see
// [Limiter.Reserve]. If the store does not answer, it returns no reservation and the store's error.
func (s *Shared) Reserve(ctx context.Context, key string, cost int, longest time.Duration) (*mete.Reservation, error) {
	req := s.request(key, cost)
	req.MaxWait = longest
	r, err := s.limiter.Reserve(ctx, req)
	switch {
	case err != nil:
		return nil, err
	case r.Degraded:
		return nil, r.Err
	}
	return r, nil
}

// Refund returns cost tokens to key's bucket, for admins: see [Limiter.Refund]. A cost below 0 does nothing.
func (s *Shared) Refund(ctx context.Context, key string, cost int) error {
	req := s.request(key, max(cost, 0))
	req.Charges[0].Cost = min(req.Charges[0].Cost, mete.TokensOf(bucket.MaxTokens))
	return s.limiter.Refund(ctx, req)
}

// Reset fills key's bucket.
func (s *Shared) Reset(ctx context.Context, key string) error {
	return s.limiter.Reset(ctx, s.request(key, 0))
}

func (s *Shared) request(key string, cost int) mete.Request {
	limit := s.limit
	if s.perKey {
		limit = limit.ForKey(key)
	}
	return mete.Request{Charges: []mete.Charge{{Key: s.storeKey(key), Limit: limit, Cost: mete.Tokens(cost)}}}
}

func (s *Shared) snapshotOf(d mete.Decision, err error) (bucket.Snapshot, error) {
	if d.Degraded {
		err = d.Err
	}
	if err != nil || len(d.Limits()) == 0 {
		return bucket.Snapshot{RetryAfter: bucket.Never}, err
	}
	return d.Limits()[0].Snapshot, nil
}
