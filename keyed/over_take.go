// SPDX-License-Identifier: Apache-2.0

package keyed

import (
	"context"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
)

// Allow takes one token from key's bucket and returns true, or takes nothing and returns
// false. If the store does not answer, Allow returns false and the store's error: the
// caller decides whether the work may go on. [mete.Spent] of the error tells whether the
// token may have been taken.
func (s *Shared) Allow(ctx context.Context, key string) (bool, error) {
	snap, err := s.Take(ctx, key, 1)
	return snap.Allowed, err
}

// Take takes cost tokens from key's bucket, or none. The snapshot's Allowed, RetryAfter
// and Remaining are as in [Limiter.Take]. With an error, the snapshot is a denial. It is
// [mete.ErrCost] for a cost below 0.
func (s *Shared) Take(ctx context.Context, key string, cost int) (bucket.Snapshot, error) {
	return s.show(s.limiter.Take(ctx, s.request(key, cost)))
}

// TakeUpTo takes as many whole tokens as there are in key's bucket, at most cost and at
// least one: the snapshot's Cost is their number. If there is not one, it is denied.
func (s *Shared) TakeUpTo(ctx context.Context, key string, cost int) (bucket.Snapshot, error) {
	return s.show(s.limiter.TakeUpTo(ctx, s.request(key, cost)))
}

// Peek answers as [Shared.Take] would, and takes nothing.
func (s *Shared) Peek(ctx context.Context, key string, cost int) (bucket.Snapshot, error) {
	return s.show(s.limiter.Peek(ctx, s.request(key, cost)))
}

// Wait takes cost tokens from key's bucket, and sleeps until they are there, as
// [Limiter.Wait] does. Callers of one process go on in their order. The errors are as
// there, and the store's.
func (s *Shared) Wait(ctx context.Context, key string, cost int) error {
	d, err := s.limiter.Wait(ctx, s.request(key, cost))
	if d.Degraded {
		return d.Err
	}
	return err
}

// Reserve takes cost tokens from key's bucket if they will be there within longest, and
// does not sleep: see [Limiter.Reserve]. If the store does not answer, there is no
// reservation, and the error is the store's.
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

// Refund gives cost tokens back to key's bucket, for administrators: see [Limiter.Refund].
// A cost below 0 gives nothing.
func (s *Shared) Refund(ctx context.Context, key string, cost int) error {
	req := s.request(key, max(cost, 0))
	req.Charges[0].Cost = min(req.Charges[0].Cost, mete.TokensOf(bucket.MaxTokens))
	return s.limiter.Refund(ctx, req)
}

// Reset makes key's bucket full.
func (s *Shared) Reset(ctx context.Context, key string) error {
	return s.limiter.Reset(ctx, s.request(key, 0))
}

func (s *Shared) request(key string, cost int) mete.Request {
	limit := s.limit
	if s.ofKey {
		limit = limit.For(key)
	}
	return mete.Request{Charges: []mete.Charge{{Key: s.storeKey(key), Limit: limit, Cost: mete.Tokens(cost)}}}
}

// show returns the only limit of a decision that the store made.
func (s *Shared) show(d mete.Decision, err error) (bucket.Snapshot, error) {
	if d.Degraded {
		err = d.Err
	}
	if err != nil || len(d.Limits()) == 0 {
		return bucket.Snapshot{RetryAfter: bucket.Never}, err
	}
	return d.Limits()[0].Snapshot, nil
}
