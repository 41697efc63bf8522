// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"context"
	"slices"
	"time"

	"github.com/metehq/mete/bucket"
)

// Take spends the request's cost from all limits it falls under, or from none.
// A request that falls under no limit is allowed.
//
// A denial is a [Decision], not an error. An error says that the request is
// invalid or that ctx is done. A store that cannot answer is no error either:
// the decision is then what the rules say about it, and [Decision.Degraded].
func (l *Limiter) Take(ctx context.Context, req Request) (d Decision, err error) {
	err = l.take(ctx, &req, Mode{MaxWait: max(req.MaxWait, 0)}, nil, &d)
	return d, err
}

// TakeUpTo takes a part of the cost, in whole tokens, if the buckets do not hold all of it:
// [Decision.Taken] says how much. A request is denied if they do not hold one token, or
// all of a cost below one. It does not reserve: [Request.MaxWait] has no part in it. A
// leaky bucket lets no more than one token, or a whole cost below one, wait in its queue.
func (l *Limiter) TakeUpTo(ctx context.Context, req Request) (d Decision, err error) {
	err = l.take(ctx, &req, Mode{UpTo: true}, nil, &d)
	return d, err
}

// Charge spends a cost that has arisen already, although the tokens may not be
// there: the bucket then owes them, and admits nothing else until they are paid
// back. A charge is denied only where the limit may not owe so much: by
// max_reserved, or the length of a queue. [Decision.Wait] says how long the debt
// lasts.
func (l *Limiter) Charge(ctx context.Context, req Request) (d Decision, err error) {
	err = l.take(ctx, &req, Mode{MaxWait: bucket.Forced}, nil, &d)
	return d, err
}

// Peek decides as [Limiter.Take] would, and spends nothing.
func (l *Limiter) Peek(ctx context.Context, req Request) (d Decision, err error) {
	err = l.take(ctx, &req, Mode{MaxWait: max(req.MaxWait, 0), DryRun: true}, nil, &d)
	return d, err
}

// take evaluates one request, charges it and, unless it is a dry run, tells the hooks. The
// costs of an allowed request go into r, if that is not nil.
func (l *Limiter) take(ctx context.Context, req *Request, mode Mode, r *receipt, d *Decision) error {
	if ctx.Err() != nil {
		return ended(ctx)
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

// charge decides a request that has been evaluated: it charges the claims to the store. If
// the store cannot answer, the rules say what to do.
func (l *Limiter) charge(ctx context.Context, e *evaluation, req *Request, mode Mode, r *receipt, d *Decision) error {
	if e.found.Verdict.Denies() {
		e.refuse(d)
		return nil
	}
	d.Allowed, d.Taken, d.Override = true, e.cost, e.found.Verdict.Allow
	if req.ID != "" {
		mode.ID = e.storeID(req.ID, mode)
	}
	if len(e.claims) > 0 {
		if l.outage != nil {
			defer e.trip.Land()
		}
		allowed, err := l.ask(ctx, e, e.claims, mode)
		if err != nil {
			if ctx.Err() != nil {
				*d = Decision{}
				return err
			}
			l.degrade(ctx, e, req, mode, r, err, d)
			return nil
		}
		d.Allowed = allowed
		e.show(d, len(e.claims))
		r = e.conclude(d, req, mode, r)
	}
	if d.Allowed && len(e.shadow) > 0 {
		l.chargeShadow(ctx, e, req, d, mode, r)
	}
	return nil
}

// refuse makes d the decision where the policy denies the request, whatever is in the
// buckets.
func (e *evaluation) refuse(d *Decision) {
	v := &e.found.Verdict
	if o := v.Block; o != nil {
		d.Override, d.Reason, d.RetryAfter = o, ReasonBlocked, until(bucket.At(o.ExpiresAt), e.now)
		return
	}
	d.Rule, d.Reason, d.RetryAfter = v.Missing.Name, ReasonMissingAttribute, bucket.Never
}

// until is how long it is from now to end, [bucket.Never] if that is beyond what a
// duration can say.
func until(end, now bucket.Instant) time.Duration {
	left := int64(end - now)
	if left > int64(bucket.Never)/int64(time.Microsecond) {
		return bucket.Never
	}
	return time.Duration(left) * time.Microsecond
}

// conclude fills in what follows from the limits of d, and notes what was spent. It
// returns the receipt, if it still is of interest.
func (e *evaluation) conclude(d *Decision, req *Request, mode Mode, r *receipt) *receipt {
	d.conclude(mode)
	if d.Taken = 0; !d.Allowed {
		return r
	}
	for _, c := range e.order { // the most of any limit, in the caller's tokens
		got := c.asked // all of it, though the status may have the scale of an earlier attempt
		if mode.UpTo {
			if got = c.status.Cost; c.asked != c.cost { // it was scaled
				got = proportion(c.asked, got, c.cost, false)
			}
		}
		d.Taken = max(d.Taken, got)
	}
	if r != nil {
		if r.within = e.within; r.waits && d.Wait == 0 {
			return nil
		}
		r.note(e, req, false)
	}
	return r
}

// chargeShadow takes from each shadow rule by itself, so that none sees another, and
// only for requests that happen: that is what the rule would see if it were
// enforced. It changes nothing in the decision but its Shadow.
func (l *Limiter) chargeShadow(ctx context.Context, e *evaluation, req *Request, d *Decision, mode Mode, r *receipt) {
	t := evaluations.Get().(*evaluation) // e keeps what the store said of its claims
	defer t.release()
	t.sharded = e.sharded
	for done := 0; done < len(e.shadow); {
		claims := e.shadow[done:]
		if end := slices.IndexFunc(claims, func(c claim) bool { return c.status.Rule != claims[0].status.Rule }); end > 0 {
			claims = claims[:end]
		}
		if mode.UpTo && len(d.Limits()) > 0 {
			for i := range claims {
				claims[i].asked = min(claims[i].asked, d.Taken)
			}
		}
		t.within = claims[0].status.Rule.Deadline
		allowed, err := l.ask(ctx, t, claims, mode)
		if err != nil {
			break // it has no say, as the request is decided, and the next would wait as long
		}
		for i := range claims {
			d.Shadow = append(d.Shadow, claims[i].status)
		}
		done += len(claims)
		if allowed && r != nil {
			r.note(t, req, true)
		}
	}
}
