// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"context"
	"slices"
	"time"

	"github.com/metehq/mete/bucket"
)

// Take takes the request's cost from all limits that apply to it, or from none. It allows a request without limits.
//
// A denial is a [Decision], not an error. Errors mean that the request is invalid or that ctx is done. If the
// store fails, the rules' on_store_error decides, and the result is [Decision.Degraded].
func (l *Limiter) Take(ctx context.Context, req Request) (d Decision, err error) {
	err = l.take(ctx, &req, Mode{MaxWait: max(req.MaxWait, 0)}, nil, &d)
	return d, err
}

// TakeUpTo takes a part of the cost in whole tokens if the buckets hold less than the full cost. [Decision.Taken] is
// the amount. It denies a request if the buckets hold less than one token, or less than a cost below one. TakeUpTo
// ignores [Request.MaxWait]. It puts at most one token, or a cost below one, into a leaky bucket's queue.
func (l *Limiter) TakeUpTo(ctx context.Context, req Request) (d Decision, err error) {
	err = l.take(ctx, &req, Mode{UpTo: true}, nil, &d)
	return d, err
}

// Charge spends a cost for work that has already happened, even if the tokens are missing. The bucket then owes
// them and admits nothing else until the debt is paid. Charge is denied only if the debt would exceed
// max_reserved or the length of a queue. [Decision.Wait] is the time until the debt is paid.
func (l *Limiter) Charge(ctx context.Context, req Request) (d Decision, err error) {
	err = l.take(ctx, &req, Mode{MaxWait: bucket.Forced}, nil, &d)
	return d, err
}

// Peek returns the decision of [Limiter.Take] without spending.
func (l *Limiter) Peek(ctx context.Context, req Request) (d Decision, err error) {
	err = l.take(ctx, &req, Mode{MaxWait: max(req.MaxWait, 0), DryRun: true}, nil, &d)
	return d, err
}

// take evaluates and charges one request, and calls the hooks unless it is a dry run. If r is not nil, it
// records the costs of an allowed request.
func (l *Limiter) take(ctx context.Context, req *Request, mode Mode, r *receipt, d *Decision) error {
	if ctx.Err() != nil {
		return contextError(ctx)
	}
	e, err := l.evaluate(req)
	if err != nil {
		return err
	}
	defer e.release()
	if err := l.charge(ctx, e, req, mode, r, d); err != nil {
		return err
	}
	if !mode.DryRun {
		l.report(ctx, e, req, d)
	}
	return nil
}

// charge charges the claims of an evaluated request to the store. If the store fails, degrade decides.
func (l *Limiter) charge(ctx context.Context, e *evaluation, req *Request, mode Mode, r *receipt, d *Decision) error {
	if e.found.Verdict.Denies() {
		e.refuse(d)
		return nil
	}
	d.Allowed, d.Taken, d.Override = true, e.cost, e.found.Verdict.Allow
	if req.ID != "" {
		mode.ID = e.storeID(req.ID, mode)
	}
	if e.slots {
		e.slotID(req)
	}
	if r != nil && !r.waits && e.policy != nil && e.policy.AwaitsResponse() {
		e.awaitResponse()
	}
	if len(e.claims) > 0 {
		if l.outage != nil {
			defer e.trip.End()
		}
		allowed, err := l.takeClaims(ctx, e, e.claims, mode)
		if err != nil {
			if ctx.Err() != nil || e.hold != nil && isHoldRefusal(err) {
				if e.slots {
					l.dropSlots(ctx, e, mode, err)
				}
				*d = Decision{}
				return err
			}
			l.degrade(ctx, e, req, mode, r, err, d)
			switch {
			case !e.slots:
			case d.Allowed:
				l.keepSlots(d, e, mode, false, Spent(err) != NotSpent)
			default:
				l.dropSlots(ctx, e, mode, err)
			}
			return nil
		}
		d.Allowed = allowed
		e.copyStatuses(d, len(e.claims))
		if r = e.conclude(d, req, mode, r); e.slots && allowed {
			l.keepSlots(d, e, mode, false, false)
		}
	}
	if d.Allowed && len(e.shadow) > 0 {
		l.chargeShadow(ctx, e, req, d, mode, r)
	}
	return nil
}

// awaitResponse lets the store expect the settlements of claims that the response determines: see [Reservation.Finish].
func (e *evaluation) awaitResponse() {
	for _, claims := range [...][]claim{e.claims, e.shadow} {
		for i := range claims {
			c := &claims[i]
			if c.status.Limit.AwaitsResponse() && c.asked > 0 && c.limit.Algorithm() == bucket.AlgorithmContinuous {
				c.await = c.status.Limit.ExpectedResponse()
			}
		}
	}
}

func (e *evaluation) refuse(d *Decision) {
	v := &e.found.Verdict
	d.denied = e.denied
	if o := v.Block; o != nil {
		d.Override, d.Reason, d.RetryAfter = o, ReasonBlocked, durationUntil(bucket.At(o.ExpiresAt), e.now)
		return
	}
	d.refusing, d.Reason, d.RetryAfter = v.Missing, ReasonMissingAttribute, bucket.Never
	if v.Missing == nil {
		d.refusing, d.Reason = v.TooLarge, v.Why
	}
	d.Rule = d.refusing.Name
}

func durationUntil(end, now bucket.Instant) time.Duration {
	left := int64(end - now)
	if left > int64(bucket.Never)/int64(time.Microsecond) {
		return bucket.Never
	}
	return time.Duration(left) * time.Microsecond
}

// conclude completes d from its limits and records the expenses in r. It returns nil if the caller no longer
// needs the receipt.
func (e *evaluation) conclude(d *Decision, req *Request, mode Mode, r *receipt) *receipt {
	d.conclude(mode)
	if d.Taken = 0; !d.Allowed {
		return r
	}
	for _, c := range e.order { // the largest amount of any limit, before scaling
		if e.slots && holdsSlot(c.limit) {
			continue
		}
		got := c.asked // the full cost: the status may show an earlier attempt's scale
		if mode.UpTo {
			if got = c.status.Cost; c.asked != c.cost { // the cost was scaled
				got = proportion(c.asked, got, c.cost, false)
			}
		}
		d.Taken = max(d.Taken, got)
	}
	if e.slots && d.Taken == 0 {
		d.Taken = bucket.Token // a slot alone
	}
	if r != nil {
		if r.within = e.within; r.waits && d.Wait == 0 {
			return nil
		}
		r.add(e, req, false)
	}
	return r
}

// chargeShadow charges each shadow rule on its own, for all parts of the request together, and only for allowed
// requests. Each rule then sees the traffic that it would see if it were enforced. It changes only d.Shadow.
func (l *Limiter) chargeShadow(ctx context.Context, e *evaluation, req *Request, d *Decision, mode Mode, r *receipt) {
	t := evaluations.Get().(*evaluation) // e keeps the snapshots of the enforced claims
	defer t.release()
	t.sharded, t.hold, t.slots, t.slot = e.sharded, e.hold, e.slots, e.slot
	for done := 0; done < len(e.shadow); {
		claims := firstTake(e.shadow[done:])
		if end := slices.IndexFunc(claims, func(c claim) bool { return c.status.Rule != claims[0].status.Rule }); end > 0 {
			claims = claims[:end]
		}
		if mode.UpTo && len(d.Limits()) > 0 {
			for i := range claims {
				claims[i].asked = min(claims[i].asked, d.Taken)
			}
		}
		t.within = claims[0].status.Rule.Deadline
		allowed, err := l.takeClaims(ctx, t, claims, mode)
		if err != nil {
			break // the request is decided, and the next rule would wait just as long
		}
		for i := range claims {
			d.Shadow = append(d.Shadow, claims[i].status)
		}
		done += len(claims)
		if allowed && r != nil {
			r.add(t, req, true)
		}
		if allowed && t.slots {
			l.keepSlots(d, t, mode, true, false)
		}
	}
}
