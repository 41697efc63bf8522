// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"context"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// storeRetry is the RetryAfter of a request that closed rules deny during an outage. The circuit breaker probes
// the store about twice in that time.
const storeRetry = time.Second

// degrade decides a request that the store did not answer. One closed rule denies it. Otherwise the local rules
// decide, all or nothing. Open rules never deny.
func (l *Limiter) degrade(ctx context.Context, e *evaluation, req *Request, mode Mode, r *receipt, err error, d *Decision) {
	*d = Decision{Allowed: true, Degraded: true, Failure: store.FailureOf(err), Err: err}
	switch c := findOnStoreError(policy.OnStoreErrorClosed, e.claims); {
	case c != nil:
		d.refuse(c)
	case l.outage != nil && hasLocal(e.claims):
		l.decideLocally(ctx, e, d, req, mode, r)
	}
	if d.Allowed {
		l.countLetThrough(e, d, mode)
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

func (d *Decision) refuse(c *claim) {
	d.Allowed, d.Rule, d.Reason, d.RetryAfter = false, c.status.Rule.Name, ReasonStoreError, storeRetry
	d.denied = c.status.firstPart()
}

func (l *Limiter) decideLocally(ctx context.Context, e *evaluation, d *Decision, req *Request, mode Mode, r *receipt) {
	// e.order must keep all claims, because waiters read it.
	var order []*claim
	var charges []store.Charge
	for _, c := range e.order {
		if c.onStoreError == policy.OnStoreErrorLocal {
			order, charges = append(order, c), append(charges, c.charge())
		}
	}
	if e.slots {
		e.setSlots(charges, mode)
	}
	snaps, accounts, allowed, err := l.outage.Take(ctx, nil, charges, mode, nil, &e.trip)
	if err != nil {
		d.refuse(order[0])
		return
	}
	d.Allowed = allowed
	for i, c := range order {
		c.status.Snapshot, c.local, c.account = snaps[i], true, accounts[i]
	}
	e.copyStatuses(d, len(order))
	all := e.order
	e.order = order
	e.conclude(d, req, mode, r)
	e.order = all
}

func (l *Limiter) countLetThrough(e *evaluation, d *Decision, mode Mode) {
	sum, got, part := bucket.Tokens(0), d.Taken, mode.UpTo && len(d.Limits()) > 0
	for i := range e.claims {
		c := &e.claims[i]
		if c.onStoreError != policy.OnStoreErrorOpen {
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

// Recover charges the local costs of an outage to the store: see [Config.Local]. A take does so for its own
// keys, so calling Recover is optional. Until the local costs are charged, other processes can spend the same
// tokens again. Call it when the store is back, or periodically. Recover stops at the first store error. It
// does not call the store if there is nothing to charge.
//
// Each charge may take until the deadline of ctx, or [Config.Deadline] if ctx has none.
func (l *Limiter) Recover(ctx context.Context) error {
	if l.outage == nil {
		return nil
	}
	err := l.outage.RecoverAll(ctx, l.config.Deadline)
	if err != nil && ctx.Err() != nil {
		err = contextError(ctx)
	}
	return err
}

// Stats counts the decisions without the store since the limiter was made. Only DeniedFromMemory includes peeks
// and shadow rules. A cost of several buckets counts once per bucket.
type Stats struct {
	Open   uint64 // decisions that allowed a request by on_store_error: open
	Closed uint64 // decisions that denied a request by on_store_error: closed
	Local  uint64 // decisions by local buckets

	// LetThrough is the cost that open limits admitted without a charge.
	LetThrough bucket.Tokens

	// SpentLocally is the cost taken from local buckets. Each token of it ends up in exactly one of Charged,
	// Refilled and Excess. All counters except Unsettled and DenyKeys only grow.
	SpentLocally bucket.Tokens

	// Charged is the local cost that was charged to the store after an outage.
	Charged bucket.Tokens

	// Refilled is the local cost that was refunded, or that refilled at the process's share of the rate before it
	// was charged. It exceeds the limit only if other processes spent the same tokens in the store.
	Refilled bucket.Tokens

	// Excess is the local cost that could not be charged: the bucket's debt limit was reached, or there were
	// too many keys to track.
	Excess bucket.Tokens

	// Unsettled is the number of keys with local costs that are not yet charged or refilled.
	Unsettled int

	// DeniedFromMemory is the number of takes that [Config.DenyFor] denied without a store call. Each shadow
	// rule counts as one take.
	DeniedFromMemory uint64

	// DenyKeys is the number of remembered denials, including ones that have ended.
	DenyKeys int
}

// Stats returns the current counters.
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
