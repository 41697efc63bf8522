// SPDX-License-Identifier: Apache-2.0

package keyed

import (
	"context"
	"time"

	"github.com/metehq/mete"
)

// Wait takes cost tokens from key's bucket, and sleeps until they are available. Callers that wait for a key
// are served in order. When a caller's context ends during the sleep, it leaves the queue and returns its tokens. In a
// bucket that refills continuously, a cost above the capacity waits until that much has refilled. Windows,
// intervals and logs never admit such a cost.
//
// A nil error means that the work may start. Wait returns immediately if sleeping cannot help:
// [mete.ErrDeadlineTooSoon] if ctx would end first, and [mete.ErrNever] if the limit never admits the cost. If
// ctx ends, the error wraps ctx.Err(). The error is [mete.ErrCost] for a cost below 0, and [mete.ErrRequest] for an
// empty key or one longer than [store.MaxKeyBytes].
func (l *Limiter) Wait(ctx context.Context, key string, cost int) error {
	_, err := l.limiter.Wait(ctx, mete.Request{Charges: l.charges(key, cost)})
	return err
}

// Reserve takes cost tokens from key's bucket if they become available within longest, without sleeping. The
// reservation's Allowed reports whether it took them, and its Wait is the time until the work may start. Settle it
// with the actual cost, or cancel it if the work does not happen. It returns the same errors as [Limiter.Wait] for
// an invalid cost or key.
//
// Settle and Cancel never break the limit's bound. They do not return tokens that have refilled since the take,
// or tokens with later work waiting behind them: see [bucket.Limit.Cancel].
//
// To count only failures, such as wrong passwords, reserve before the attempt and cancel after a success.
// [Limiter.Refund] does not know the take, and would also return refilled tokens.
func (l *Limiter) Reserve(key string, cost int, longest time.Duration) (*mete.Reservation, error) {
	return l.limiter.Reserve(context.Background(), mete.Request{
		Charges: l.charges(key, cost),
		MaxWait: longest,
	})
}

func (l *Limiter) charges(key string, cost int) []mete.Charge {
	return []mete.Charge{{Key: key, Limit: l.limitFor(key), Cost: mete.Tokens(cost)}}
}
