// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// Wait takes the request's cost, and sleeps until the tokens are available. Callers that wait for the same keys
// form a queue in the order of their calls. Only the first caller calls the store. It spends its tokens before
// it sleeps for them, so no other caller overtakes it. A caller with a canceled context returns its tokens, and
// the callers behind it move up.
//
// Wait returns a nil error when the request may go ahead. It returns immediately if sleeping cannot help:
//
//   - [ErrNever]: the cost exceeds the bucket's capacity.
//   - [ErrDeadlineTooSoon]: the wait, including the delay of a stage, would exceed the deadline of ctx or
//     [Request.MaxWait].
//   - [ErrRefused]: a rule denies the request for another reason, such as a missing attribute or a store error.
//
// If ctx ends first, the error wraps ctx.Err() and its cause.
//
// Each Limiter has its own queues. Several limiters that share a store are served in the order in which their first
// callers call the store. A Take with [Request.MaxWait] or a Reserve does not queue, and is served right after the
// first caller. Requests with overlapping but different keys use different queues. If a limit allows no debt
// (sliding limits, max_reserved: 0), the first caller cannot spend in advance. A Take at the right moment can then
// overtake it. If the context of a request with an ID ends during the sleep, the tokens stay spent: the next attempt
// uses them.
func (l *Limiter) Wait(ctx context.Context, req Request) (Decision, error) {
	if ctx.Err() != nil {
		return Decision{}, contextError(ctx)
	}
	w := &waiter{limiter: l, req: &req}
	if deadline, ok := ctx.Deadline(); ok {
		w.deadline = deadline
	}
	if req.MaxWait > 0 {
		if own := time.Now().Add(req.MaxWait); w.deadline.IsZero() || own.Before(w.deadline) {
			w.deadline, w.ownDeadline = own, true
		}
	}
	var err error
	if w.evaluation, err = l.evaluate(&req); err != nil {
		return Decision{}, err
	}
	defer w.evaluation.release()
	return w.wait(ctx)
}

func (w *waiter) wait(ctx context.Context) (Decision, error) {
	charges := w.evaluation.charge(w.evaluation.claims, w.limiter.config.Scale)
	if len(charges) == 0 || w.evaluation.found.Verdict.Denies() || slices.ContainsFunc(charges, neverAdmitted) {
		d, err := w.take(ctx, 1, nil)
		if err == nil && !d.Allowed {
			_, err = w.retryAfter(&d, w.maxWait())
		}
		return w.report(ctx, d, err)
	}
	w.setQueue(charges)
	arrival := w.shard.join(w)
	if arrival == roleProbe { // without a reservation, which would overtake the queue
		spent, longest := receipt{waits: true}, w.maxWait()
		d, err := w.take(ctx, 1, &spent)
		switch {
		case err == nil && d.Allowed:
			d, _, err = w.finishAdmitted(ctx, d, longest, &spent)
			return d, err
		case err == nil:
			_, err = w.retryAfter(&d, longest)
		}
		if err != nil {
			return w.report(ctx, d, err)
		}
		arrival = w.shard.enqueue(w)
	}
	if arrival == roleWait {
		if err := w.awaitTurn(ctx); err != nil {
			w.shard.leave(w, false)
			return Decision{}, err
		}
	}
	if w.tooSoon {
		return w.denyTooLate(ctx)
	}
	return w.lead(ctx)
}

// neverAdmitted reports whether the cost exceeds the limit's capacity and debt, so that queueing is useless.
func neverAdmitted(c store.Charge) bool {
	most := c.Limit.Capacity()
	if c.Limit.Algorithm() == bucket.AlgorithmContinuous {
		most += c.Limit.MaxReserved()
	}
	return c.Cost > most
}

// awaitTurn sleeps until w is first in its queue or cannot meet its deadline.
func (w *waiter) awaitTurn(ctx context.Context) error {
	var deadline <-chan time.Time
	if w.ownDeadline {
		timer := time.NewTimer(w.maxWait())
		defer timer.Stop()
		deadline = timer.C
	}
	select {
	case <-w.turn:
		return nil
	case <-ctx.Done():
		return contextError(ctx)
	case <-deadline:
		return fmt.Errorf("%w: maximum wait %v", ErrDeadlineTooSoon, w.req.MaxWait)
	}
}

func (w *waiter) lead(ctx context.Context) (Decision, error) {
	refunded := false
	defer func() { w.shard.leave(w, refunded) }()
	w.leads = true
	for {
		spent := receipt{waits: true}
		longest, asked := w.maxWait(), time.Now()
		d, err := w.take(ctx, longest, &spent)
		if err != nil || d.Allowed && d.Wait == 0 {
			return w.report(ctx, d, err)
		}
		if d.Allowed {
			if w.hasStoreState(ctx, &d) {
				w.shard.publish(w, asked, true)
			}
			d, refunded, err = w.finishAdmitted(ctx, d, longest, &spent)
			return d, err
		}
		after, err := w.retryAfter(&d, longest)
		if err != nil {
			return w.report(ctx, d, err)
		}
		if w.hasStoreState(ctx, &d) {
			w.shard.publish(w, asked, false)
		}
		if err := sleep(ctx, after); err != nil {
			return d, err
		}
	}
}

// hasStoreState reports whether d shows the state of the store to the other waiters. A local bucket does not,
// and neither does a transaction that may be rolled back.
func (w *waiter) hasStoreState(ctx context.Context, d *Decision) bool {
	return !d.Degraded && !w.limiter.inTransaction(ctx)
}

func (w *waiter) take(ctx context.Context, longest time.Duration, r *receipt) (d Decision, err error) {
	err = w.limiter.charge(ctx, w.evaluation, w.req, Mode{MaxWait: longest}, r, &d)
	return d, err
}

func (w *waiter) report(ctx context.Context, d Decision, err error) (Decision, error) {
	if d.Allowed || d.Reason != "" {
		w.limiter.report(ctx, w.evaluation, w.req, &d)
	}
	return d, err
}

func (w *waiter) denyTooLate(ctx context.Context) (Decision, error) {
	d := Decision{Reason: w.reason, Rule: w.rule, RetryAfter: w.missed}
	err := fmt.Errorf("%w: too many requests are waiting already", addRule(ErrDeadlineTooSoon, d.Rule))
	return w.report(ctx, d, err)
}

func (w *waiter) refundReceipt(ctx context.Context, spent *receipt) error {
	ctx = context.WithoutCancel(ctx)
	err := w.limiter.refundExpenses(ctx, spent.enforced, keepNothing)
	_ = w.limiter.refundExpenses(ctx, spent.shadow, keepNothing)
	return err
}

// maxWait returns how long w may still wait. It is never 0, because the store would then allow the wait of a
// leaky bucket's queue.
func (w *waiter) maxWait() time.Duration {
	if w.deadline.IsZero() {
		return bucket.Never
	}
	return max(time.Until(w.deadline), 1)
}

// retryAfter returns how long to sleep before the next attempt, or an error if no attempt can succeed. If only the
// debt limit prevents a reservation, the caller waits and tries again. While all slots are held, it polls.
func (w *waiter) retryAfter(d *Decision, longest time.Duration) (time.Duration, error) {
	if len(d.Limits()) == 0 {
		return 0, fmt.Errorf("%w: %s", addRule(ErrRefused, d.Rule), d.Reason)
	}
	var need, after time.Duration
	limits := d.Limits()
	for i := range limits {
		s := &limits[i]
		switch limit := &s.Snapshot.Limit; {
		case s.Allowed:
		case holdsSlot(limit): // a request may release its slot at any time
			after = max(after, min(s.RetryAfter, slotPoll))
			need = max(need, after)
			continue
		case s.RetryAfter == bucket.Never && neverAdmitted(store.Charge{Limit: *limit, Cost: s.Cost}):
			return 0, addRule(ErrNever, s.Rule.Name)
		case limit.Algorithm() == bucket.AlgorithmContinuous || limit.Algorithm() == bucket.AlgorithmStepped:
			need = max(need, s.RefillAfter(s.Cost))
		default:
			need = max(need, s.RetryAfter)
		}
		left, _ := s.Penalty() // a reservation cannot shorten it
		need, after = max(need, left), max(after, s.RetryAfter)
	}
	if need > longest || d.RetryAfter == bucket.Never {
		return 0, fmt.Errorf("%w: maximum wait %v", addRule(ErrDeadlineTooSoon, d.Rule), longest)
	}
	return after, nil
}

// slotPoll is how often the first of a queue looks for a free slot.
const slotPoll = 100 * time.Millisecond

// finishAdmitted sleeps until an admitted request may start. After an error it refunds a request without an ID.
func (w *waiter) finishAdmitted(ctx context.Context, d Decision, longest time.Duration, spent *receipt) (_ Decision, refunded bool, err error) {
	slots := d.Slots
	if d.Wait > longest { // only a stage can delay longer than maxWait
		d, err = w.denyDelayed(d, longest), fmt.Errorf("%w: maximum wait %v", addRule(ErrDeadlineTooSoon, d.Rule), longest)
	}
	if d, err = w.report(ctx, d, err); err == nil {
		err = w.sleepUntilStart(ctx, &d)
	}
	if err != nil && w.req.ID == "" {
		refunded = true
		err = errors.Join(err, w.refundReceipt(ctx, spent))
		slots.ReleaseSoon(ctx)
	}
	return d, refunded, err
}

// sleepUntilStart sleeps until the tokens of an admitted request are available, and then for the delay of its
// stages. During that delay the next waiter already has its turn.
func (w *waiter) sleepUntilStart(ctx context.Context, d *Decision) error {
	owed := time.Duration(0)
	for i, limits := 0, d.Limits(); i < len(limits); i++ {
		owed = max(owed, limits[i].Wait())
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
		w.shard.leave(w, false)
	}
	err := sleep(ctx, d.Wait-owed)
	if err != nil {
		w.shard.invalidate(w)
	}
	return err
}

func (w *waiter) denyDelayed(d Decision, longest time.Duration) Decision {
	denial := Decision{}
	limits := d.Limits()
	for i := range limits {
		s := &limits[i]
		if after := s.UndelayedAfter(longest); after > denial.RetryAfter {
			denial.Rule, denial.Reason, denial.RetryAfter = s.Rule.Name, s.Limit.Reason, after
		}
	}
	return denial
}
