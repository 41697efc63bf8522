// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// admitted sleeps until an admitted request may go. Where it cannot, what was spent
// is given back, which it reports.
func (w *waiter) admitted(ctx context.Context, d Decision, longest time.Duration, spent *receipt) (_ Decision, refunded bool, err error) {
	if d.Wait > longest { // only a stage delays it for longer than it was asked to wait
		d, err = w.delayed(d, longest), fmt.Errorf("%w: longest wait %v", byRule(ErrDeadlineTooSoon, d.Rule), longest)
	}
	if d, err = w.end(ctx, d, err); err == nil {
		err = w.sleepOff(ctx, &d)
	}
	if err != nil && w.req.ID == "" {
		refunded = true
		err = errors.Join(err, w.giveBack(ctx, spent))
	}
	return d, refunded, err
}

// sleepOff sleeps until the tokens of an admitted request are there, and for what
// stages delay it beyond that: then the next in its queue has its turn already.
func (w *waiter) sleepOff(ctx context.Context, d *Decision) error {
	owed := time.Duration(0)
	for i := range d.Limits {
		owed = max(owed, d.Limits[i].Wait())
	}
	if owed > 0 {
		if err := sleep(ctx, owed); err != nil {
			return err
		}
	}
	if d.Wait <= owed {
		return nil
	}
	if w.leads {
		w.lines.leave(w, false)
	}
	err := sleep(ctx, d.Wait-owed)
	if err != nil {
		w.lines.forget(w)
	}
	return err
}

// delayed is the denial of a request that stages would delay for too long.
func (w *waiter) delayed(d Decision, longest time.Duration) Decision {
	denial := Decision{}
	for i := range d.Limits {
		s := &d.Limits[i]
		if after := s.UndelayedAfter(longest); after > denial.RetryAfter {
			denial.Rule, denial.Reason, denial.RetryAfter = s.Rule.Name, s.Limit.Reason, after
		}
	}
	return denial
}
