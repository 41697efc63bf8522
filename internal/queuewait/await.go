// SPDX-License-Identifier: Apache-2.0

// Package queuewait waits for the turns of requests that a queue or a delaying stage admits later. It is for adapters
// that cannot tell their clients to wait.
package queuewait

import (
	"context"
	"errors"
	"time"

	"github.com/metehq/mete"
)

// DefaultMaxWait is the default maximum wait.
const DefaultMaxWait = 30 * time.Second

// Await waits for the turn of r. If the turn is later than most or ctx's deadline, Await refunds r immediately and
// turns its decision into a denial. A client that returns after its RetryAfter then has an acceptable wait, if no
// other client takes the turn. If ctx ends during the wait, Await refunds r and returns the cause.
func Await(ctx context.Context, r *mete.Reservation, most time.Duration) error {
	if !r.Allowed || r.Wait <= 0 {
		return nil
	}
	if r.Wait > most {
		_ = refund(ctx, r) // if the store fails, the tokens are lost
		deny(&r.Decision, most, most)
		return nil
	}
	if deadline, ok := ctx.Deadline(); ok && ctx.Err() == nil {
		if left := time.Until(deadline); left <= r.Wait {
			_ = refund(ctx, r)
			deny(&r.Decision, max(left-1, 0), 0) // a turn at the deadline is too late
			return nil
		}
	}
	timer := time.NewTimer(r.Wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), refund(ctx, r))
	}
}

func refund(ctx context.Context, r *mete.Reservation) error {
	return r.Cancel(context.WithoutCancel(ctx))
}

// deny turns an admission into a denial by the limits with a wait or a stage delay longer than most. The client
// can retry when the wait for its turn is only off, or when the stages have ended.
func deny(d *mete.Decision, most, off time.Duration) {
	*d = d.WithLimits(d.Limits()...) // the limits of d may be shared
	for i := range d.Limits() {
		s := &d.Limits()[i]
		retry := s.UndelayedAfter(most)
		if s.Wait() > most {
			retry = max(retry, s.Wait()-off)
		}
		if retry > 0 {
			s.Allowed, s.RetryAfter = false, retry
		}
	}
	d.Allowed, d.Wait, d.Taken, d.Slots, d.RetryAfter = false, 0, 0, nil, d.Wait-off
	if decider := d.Decider(); decider != nil {
		d.Rule, d.Reason, d.RetryAfter = decider.Rule.Name, decider.Reason(), decider.RetryAfter
	}
}
