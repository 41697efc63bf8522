// SPDX-License-Identifier: Apache-2.0

// Package turn waits for the turns of requests that a limit with a queue, or with
// stages that delay, admits for later. Doors whose callers cannot be told to wait keep them waiting; all of
// them do so alike.
package turn

import (
	"context"
	"errors"
	"time"

	"github.com/metehq/mete"
)

// Most is the longest wait where nobody says another.
const Most = 30 * time.Second

// Await returns when the turn of r has come, if that is what it has to wait for.
// Where that would be later than most, or not before ctx's deadline, what r spent
// is given back at once, and its decision becomes a denial: who comes back after
// its RetryAfter, if it is alone, need not wait longer than it could have. An error
// is the cause of ctx's end, while r waited; what r spent is then given back.
func Await(ctx context.Context, r *mete.Reservation, most time.Duration) error {
	if !r.Allowed || r.Wait <= 0 {
		return nil
	}
	if r.Wait > most {
		_ = giveBack(ctx, r) // if the store fails, it is spent
		deny(&r.Decision, most, most)
		return nil
	}
	if deadline, ok := ctx.Deadline(); ok && ctx.Err() == nil {
		if left := time.Until(deadline); left <= r.Wait {
			_ = giveBack(ctx, r)
			deny(&r.Decision, max(left-1, 0), 0) // what is at the deadline is too late
			return nil
		}
	}
	timer := time.NewTimer(r.Wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), giveBack(ctx, r))
	}
}

func giveBack(ctx context.Context, r *mete.Reservation) error {
	return r.Cancel(context.WithoutCancel(ctx))
}

// deny turns an admission into a denial by the limits whose turn is later than
// most, to be tried again when the turn is only so far off, and by those with stages
// that delay for longer, to be tried again when these are over.
func deny(d *mete.Decision, most, off time.Duration) {
	*d = d.WithLimits(d.Limits()...) // others may have seen those of d
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
	d.Allowed, d.Wait, d.Taken, d.RetryAfter = false, 0, 0, d.Wait-off
	if decider := d.Decider(); decider != nil {
		d.Rule, d.Reason, d.RetryAfter = decider.Rule.Name, decider.Limit.Reason, decider.RetryAfter
	}
}
