// SPDX-License-Identifier: Apache-2.0

package keyed

import (
	"context"
	"time"

	"github.com/metehq/mete"
)

// Wait takes cost tokens from key's bucket, and sleeps until they are there. Those
// who wait for a key go on in the order in which they came; one whose context ends
// while it sleeps gives its place and its tokens back. In a bucket that refills all
// the time, a cost above the capacity waits until so much has been refilled; of
// windows, intervals and logs it is never admitted.
//
// Nil means go. It does not begin to sleep in vain: the error is
// [mete.ErrDeadlineTooSoon] where ctx would end first, and [mete.ErrNever] where
// the limit never admits so much. Where ctx ends, it wraps ctx.Err(). It is [mete.ErrCost] for a cost below 0,
// and [mete.ErrRequest] for a key that is empty or longer than [store.MaxKeyBytes].
func (l *Limiter) Wait(ctx context.Context, key string, cost int) error {
	_, err := l.limiter.Wait(ctx, mete.Request{Charges: l.charges(key, cost)})
	return err
}

// Reserve takes cost tokens from key's bucket if they will be there within longest,
// and does not sleep. The reservation's Allowed tells whether it took them, its Wait
// when the work may start. Settle it when the work is done and cost more or less; if
// the work is not done at all, cancel it. Errors are those of [Limiter.Wait] about the
// cost and the key.
//
// A settlement gives back no more than breaks no bound. What has refilled since the
// take does not come back. While the work waits for its start, a part of its cost does
// not come back either: later work has its place in turn behind it. See
// [bucket.Limit.Cancel].
//
// Reserve and Cancel are the way to count only what fails, such as wrong passwords:
// reserve before the attempt, and cancel when it succeeds. [Limiter.Refund] knows no
// take, and would give back tokens that have refilled meanwhile.
func (l *Limiter) Reserve(key string, cost int, longest time.Duration) (*mete.Reservation, error) {
	return l.limiter.Reserve(context.Background(), mete.Request{
		Charges: l.charges(key, cost),
		MaxWait: longest,
	})
}

func (l *Limiter) charges(key string, cost int) []mete.Charge {
	return []mete.Charge{{Key: key, Limit: l.limitFor(key), Cost: mete.Tokens(cost)}}
}
