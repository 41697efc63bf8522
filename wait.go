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

// Wait takes, and sleeps until the tokens are there. Those who wait for the same
// keys form a queue, in the order in which they called: the first of them alone
// asks the store, and spends the tokens that it sleeps for, so that nobody gets
// ahead of it. One whose context ends gives its place back, and those behind it
// move up.
//
// Wait ends with nil when the request may go ahead. It does not sleep where that
// cannot help: the error is [ErrNever] where the cost can never be admitted, and
// [ErrDeadlineTooSoon] where, as things stand, the wait would outlast ctx's
// deadline or [Request.MaxWait]: what a stage delays a request is part of it. A
// rule that refuses for another reason, such as a missing attribute or a store that
// cannot answer, gives [ErrRefused]. Where ctx ends first, the error wraps ctx.Err()
// and its cause.
//
// A queue is one Limiter's: several that share a store are served in the order in
// which their first ones ask. A Take with [Request.MaxWait] and a Reserve stand in
// no queue, and come right behind its first. Requests whose keys are not the same,
// but overlap, stand in different queues. Where nothing may be owed (sliding
// limits, max_reserved: 0) the first cannot spend in advance, and a Take that
// comes at the right moment may get ahead of it. A request with an ID whose
// context ends while it sleeps keeps its tokens: the next attempt finds it paid
// for.
func (l *Limiter) Wait(ctx context.Context, req Request) (Decision, error) {
	if ctx.Err() != nil {
		return Decision{}, ended(ctx)
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

// wait is Wait for a request that has been matched.
func (w *waiter) wait(ctx context.Context) (Decision, error) {
	charges := w.evaluation.charge(w.evaluation.claims, w.limiter.config.Scale)
	if len(charges) == 0 || w.evaluation.found.Verdict.Denies() || slices.ContainsFunc(charges, neverAdmitted) {
		d, err := w.ask(ctx, 1, nil)
		if err == nil && !d.Allowed {
			_, err = w.retry(&d, w.longest())
		}
		return w.end(ctx, d, err)
	}
	w.queueFor(charges)
	arrival := w.lines.join(w)
	if arrival == beside { // without a reservation: it would be in nobody's order
		spent, longest := receipt{waits: true}, w.longest()
		d, err := w.ask(ctx, 1, &spent)
		switch {
		case err == nil && d.Allowed:
			d, _, err = w.admitted(ctx, d, longest, &spent)
			return d, err
		case err == nil:
			_, err = w.retry(&d, longest)
		}
		if err != nil {
			return w.end(ctx, d, err)
		}
		arrival = w.lines.lineUp(w)
	}
	if arrival == behind {
		if err := w.awaitTurn(ctx); err != nil {
			w.lines.leave(w, false)
			return Decision{}, err
		}
	}
	if w.tooSoon {
		return w.tooLate(ctx)
	}
	return w.lead(ctx)
}

// neverAdmitted reports whether no wait helps, so that nobody needs to be asked
// in turn.
func neverAdmitted(c store.Charge) bool {
	most := c.Limit.Capacity()
	if c.Limit.Algorithm() == bucket.Continuous {
		most += c.Limit.MaxReserved()
	}
	return c.Cost > most
}

// awaitTurn sleeps until w is the first of its queue, or need not become it.
func (w *waiter) awaitTurn(ctx context.Context) error {
	var deadline <-chan time.Time
	if w.ownDeadline {
		timer := time.NewTimer(w.longest())
		defer timer.Stop()
		deadline = timer.C
	}
	select {
	case <-w.turn:
		return nil
	case <-ctx.Done():
		return ended(ctx)
	case <-deadline:
		return fmt.Errorf("%w: longest wait %v", ErrDeadlineTooSoon, w.req.MaxWait)
	}
}

// lead does what the first of a queue does.
func (w *waiter) lead(ctx context.Context) (Decision, error) {
	refunded := false
	defer func() { w.lines.leave(w, refunded) }()
	w.leads = true
	for {
		spent := receipt{waits: true}
		longest, asked := w.longest(), time.Now()
		d, err := w.ask(ctx, longest, &spent)
		if err != nil || d.Allowed && d.Wait == 0 {
			return w.end(ctx, d, err)
		}
		if d.Allowed {
			if w.informs(ctx, &d) {
				w.lines.publish(w, asked, true)
			}
			d, refunded, err = w.admitted(ctx, d, longest, &spent)
			return d, err
		}
		after, err := w.retry(&d, longest)
		if err != nil {
			return w.end(ctx, d, err)
		}
		if w.informs(ctx, &d) {
			w.lines.publish(w, asked, false)
		}
		if err := sleep(ctx, after); err != nil {
			return d, err
		}
	}
}

// informs reports whether d tells the others of the queue what the store holds. A local
// bucket does not, and neither does a transaction that may be rolled back.
func (w *waiter) informs(ctx context.Context, d *Decision) bool {
	return !d.Degraded && !w.limiter.tentative(ctx)
}

// ask asks for tokens that are there within longest.
func (w *waiter) ask(ctx context.Context, longest time.Duration, r *receipt) (d Decision, err error) {
	err = w.limiter.charge(ctx, w.evaluation, w.req, Mode{MaxWait: longest}, r, &d)
	return d, err
}

// end reports what was decided.
func (w *waiter) end(ctx context.Context, d Decision, err error) (Decision, error) {
	if d.Allowed || d.Reason != "" {
		w.limiter.report(ctx, w.evaluation, w.req, &d)
	}
	return d, err
}

// tooLate is the answer to a request whose turn comes after its deadline.
func (w *waiter) tooLate(ctx context.Context) (Decision, error) {
	d := Decision{Reason: w.reason, Rule: w.rule, RetryAfter: w.missed}
	err := fmt.Errorf("%w: too many wait for it already", byRule(ErrDeadlineTooSoon, d.Rule))
	return w.end(ctx, d, err)
}

// giveBack refunds what was spent, also where ctx is done.
func (w *waiter) giveBack(ctx context.Context, spent *receipt) error {
	ctx = context.WithoutCancel(ctx)
	err := w.limiter.refund(ctx, spent.enforced, nothing)
	_ = w.limiter.refund(ctx, spent.shadow, nothing)
	return err
}

// longest is how long w may still wait. It is never 0, which would leave it to
// the length of a leaky bucket's queue.
func (w *waiter) longest() time.Duration {
	if w.deadline.IsZero() {
		return bucket.Never
	}
	return max(time.Until(w.deadline), 1)
}

// retry returns how long to sleep before a denied request is asked for again, or
// why it should not be. Nothing but what may be owed stands against one that is
// worth waiting for.
func (w *waiter) retry(d *Decision, longest time.Duration) (time.Duration, error) {
	if len(d.Limits()) == 0 {
		return 0, fmt.Errorf("%w: %s", byRule(ErrRefused, d.Rule), d.Reason)
	}
	var need time.Duration
	limits := d.Limits()
	for i := range limits {
		s := &limits[i]
		switch limit := &s.Snapshot.Limit; {
		case s.Allowed:
		case s.RetryAfter == bucket.Never && neverAdmitted(store.Charge{Limit: *limit, Cost: s.Cost}):
			return 0, byRule(ErrNever, s.Rule.Name)
		case limit.Algorithm() == bucket.Continuous || limit.Algorithm() == bucket.Stepped:
			need = max(need, s.Earliest(s.Cost))
		default:
			need = max(need, s.RetryAfter)
		}
	}
	if need > longest || d.RetryAfter == bucket.Never {
		return 0, fmt.Errorf("%w: longest wait %v", byRule(ErrDeadlineTooSoon, d.Rule), longest)
	}
	return d.RetryAfter, nil
}

// sleep sleeps for d, or until ctx is done.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ended(ctx)
	}
}

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
	limits := d.Limits()
	for i := range limits {
		s := &limits[i]
		if after := s.UndelayedAfter(longest); after > denial.RetryAfter {
			denial.Rule, denial.Reason, denial.RetryAfter = s.Rule.Name, s.Limit.Reason, after
		}
	}
	return denial
}
