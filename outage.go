// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"context"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// storeRetry is when it is worth asking again whether the store answers: the breaker
// in front of one lets somebody try twice in that time. There is nothing exact in it.
const storeRetry = time.Second

// degrade makes d the decision of a request that the store could not answer. One rule that
// says closed refuses it. If none does, the rules that say local decide, all or nothing.
// Rules that say open have no part in it.
func (l *Limiter) degrade(ctx context.Context, e *evaluation, req *Request, mode Mode, r *receipt, err error, d *Decision) {
	*d = Decision{Allowed: true, Degraded: true, Failure: store.FailureOf(err), Err: err}
	switch c := firstThatSays(policy.StoreErrorClosed, e.claims); {
	case c != nil:
		d.refuse(c.status.Rule)
	case l.outage != nil && anyLocal(e.claims):
		l.decideLocally(ctx, e, d, req, mode, r)
	}
	if d.Allowed {
		l.letThrough(e, d, mode)
	}
	if mode.DryRun {
		return
	}
	switch {
	case d.Reason == ReasonStoreError:
		l.counts.closed.Add(1)
	case len(d.Limits()) > 0:
		l.counts.local.Add(1)
	default:
		l.counts.open.Add(1)
	}
}

// refuse makes d the decision that nobody could make.
func (d *Decision) refuse(rule *policy.Rule) {
	d.Allowed, d.Rule, d.Reason, d.RetryAfter = false, rule.Name, ReasonStoreError, storeRetry
}

// decideLocally takes from the local buckets of the rules that say local.
func (l *Limiter) decideLocally(ctx context.Context, e *evaluation, d *Decision, req *Request, mode Mode, r *receipt) {
	// The order of all claims stays: those who wait for them look at it.
	var order []*claim
	var charges []store.Charge
	for _, c := range e.order {
		if c.onStoreError == policy.StoreErrorLocal {
			order, charges = append(order, c), append(charges, c.charge())
		}
	}
	snaps, accounts, allowed, err := l.outage.Take(ctx, nil, charges, mode, nil, &e.trip)
	if err != nil {
		d.refuse(order[0].status.Rule)
		return
	}
	d.Allowed = allowed
	for i, c := range order {
		c.status.Snapshot, c.local, c.account = snaps[i], true, accounts[i]
	}
	e.show(d, len(order))
	all := e.order
	e.order = order
	e.conclude(d, req, mode, r)
	e.order = all
}

// letThrough counts the costs that rules let through because they say open.
func (l *Limiter) letThrough(e *evaluation, d *Decision, mode Mode) {
	sum, got, part := bucket.Tokens(0), d.Taken, mode.UpTo && len(d.Limits()) > 0
	for i := range e.claims {
		c := &e.claims[i]
		if c.onStoreError != policy.StoreErrorOpen {
			continue
		}
		cost := c.asked
		if part {
			cost = min(cost, got)
		}
		d.Taken, sum = max(d.Taken, cost), sum+cost
	}
	if !mode.DryRun {
		l.counts.through.Add(int64(sum))
	}
}

// Recover charges to the store what was spent in its place while it did not
// answer: see [Config.Local]. Takes do so for the keys they need, and nobody has to
// call it. But until a process has, others can take from the store what it has
// spent already: so call it when the store is back, or now and then. It ends with
// the first failure of the store. If nothing is to be charged, it does nothing and
// does not call the store.
func (l *Limiter) Recover(ctx context.Context) error {
	if l.outage == nil {
		return nil
	}
	err := l.outage.RecoverAll(ctx, l.config.Deadline)
	if err != nil && ctx.Err() != nil {
		err = ended(ctx)
	}
	return err
}

// Stats count what a [Limiter] has decided without its store since it was made.
// Peeks and shadow rules count in DeniedFromMemory alone. Tokens count once for each bucket that
// they should have been taken from.
type Stats struct {
	Open   uint64 // decisions that let a request through
	Closed uint64 // that refused one
	Local  uint64 // that the buckets of the process made

	// LetThrough was admitted by limits that say open, and charged to no bucket.
	LetThrough bucket.Tokens

	// SpentLocally was taken from local buckets. Each token of it is, sooner or
	// later, in exactly one of the next three. Like all but Unsettled and DenyKeys it never falls.
	SpentLocally bucket.Tokens

	// Charged was charged to the store when it answered again.
	Charged bucket.Tokens

	// Refilled came back to the local buckets before that: it was given back, or is
	// the process's share of what the store's bucket refills. This is more than the
	// limit admits only where other processes reached the store meanwhile, and took
	// the same from there.
	Refilled bucket.Tokens

	// Excess could neither be charged, because the bucket may not owe it, nor kept
	// in mind, because there were too many keys.
	Excess bucket.Tokens

	// Unsettled is the number of keys with something that is yet to be charged or
	// to be refilled.
	Unsettled int

	// DeniedFromMemory is the number of takes that were denied without a call of the
	// store, by [Config.DenyFor]. Each shadow rule takes by itself.
	DeniedFromMemory uint64

	// DenyKeys is the number of buckets that are remembered for that now. Some of them may
	// deny nothing any more.
	DenyKeys int
}

// Stats returns the numbers as they are.
func (l *Limiter) Stats() Stats {
	c := &l.counts
	s := Stats{Open: c.open.Load(), Closed: c.closed.Load(), Local: c.local.Load(), LetThrough: bucket.Tokens(c.through.Load())}
	if l.outage != nil {
		o := l.outage.Stats()
		s.SpentLocally, s.Charged, s.Refilled, s.Excess, s.Unsettled = o.SpentLocally, o.Charged, o.Refilled, o.Excess, o.Unsettled
	}
	if l.memory != nil {
		m := l.memory.Stats()
		s.DeniedFromMemory, s.DenyKeys = m.Denied, m.Denying
	}
	return s
}
