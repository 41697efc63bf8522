// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/outage"
	"github.com/metehq/mete/store"
)

// A receipt is what an admitted request spent. A nil receipt takes no notes.
type receipt struct {
	waits    bool // only requests that have to wait are of interest
	enforced []expense
	shadow   []expense
	within   time.Duration // the deadline that the request had
}

// An expense is what was spent from one bucket.
type expense struct {
	store.Charge              // Cost is what is spent of it now, scaled
	rule         string       // empty where the request brought the charge
	taken        bucket.Taken // what its cancellation names
	asked        bucket.Tokens
	scaled       bucket.Tokens   // what asked became
	settled      bool            // by what was used in fact
	fixed        bucket.Tokens   // the part of asked that is not settled
	local        bool            // from the local bucket
	account      *outage.Account // that it is in; nil where there are too many
	share        bucket.Limit    // of the local bucket
}

// note adds what the charges in e have spent.
func (r *receipt) note(e *evaluation, req *Request, shadow bool) {
	list := &r.enforced
	if shadow {
		list = &r.shadow
	}
	for _, c := range e.order {
		x := expense{Charge: c.charge(), rule: c.status.Rule.Name, taken: c.status.Taken(), asked: c.asked}
		x.Cost = c.status.Cost
		x.scaled = x.Cost // not c.cost: an earlier attempt with the ID may have had another scale
		if c.local {
			x.local, x.account, x.share = true, c.account, c.status.Snapshot.Limit
		}
		x.divide(req, c, shadow)
		*list = append(*list, x)
	}
}

// divide says which part of what was asked for is settled: that which the
// request decided.
func (x *expense) divide(req *Request, c *claim, shadow bool) {
	rest := x.asked // the rule's
	for _, own := range req.Charges {
		if own.Key != x.Key || shadow {
			continue
		}
		cost, _ := own.Cost.count() // checked
		rest -= cost
		if own.Fixed {
			x.fixed += cost
		} else {
			x.settled = true
		}
	}
	if c.own {
		return
	}
	if req.Cost > 0 || !c.status.Limit.FixedCost() {
		x.settled = true
	} else {
		x.fixed += rest
	}
}

// target is what e should have cost if actual was used.
func (e *expense) target(actual bucket.Tokens) bucket.Tokens {
	total := min(e.fixed+actual, bucket.MaxTokens)
	switch {
	case !e.settled:
		return e.Cost
	case e.asked == e.scaled || e.asked == 0:
		return total
	}
	return proportion(total, e.scaled, e.asked, true)
}

// refund gives back all but keep(e) of the expenses, in one call; what was spent
// locally, and not yet charged to the store, to the local buckets.
func (l *Limiter) refund(ctx context.Context, expenses []expense, keep func(*expense) bucket.Tokens) error {
	var refunds []Refund
	for i := range expenses {
		e := &expenses[i]
		back := e.Cost - keep(e)
		// Without its take, a refund would be an administrator's, which no bound stops.
		if back <= 0 || e.taken == (bucket.Taken{}) || e.local && l.refundLocally(ctx, e, back) {
			continue
		}
		c := e.Charge
		c.Cost = back
		refunds = append(refunds, Refund{Charge: c, Taken: e.taken})
	}
	if len(refunds) == 0 {
		return nil
	}
	slices.SortFunc(refunds, func(a, b Refund) int { return strings.Compare(a.Key, b.Key) })
	if err := l.giveBack(ctx, refunds, ""); err != nil {
		return err
	}
	for i := range expenses {
		expenses[i].Cost = min(expenses[i].Cost, keep(&expenses[i]))
	}
	return nil
}

// refundLocally gives back to the local bucket that e was spent from, and reports whether
// it did: see [outage.Fallback.Refund].
func (l *Limiter) refundLocally(ctx context.Context, e *expense, back bucket.Tokens) bool {
	given := l.outage.Refund(ctx, outage.Refund{Account: e.account, Share: e.share, Taken: e.taken, Cost: back})
	if given {
		e.Cost -= back
	}
	return given
}

// owe charges what was used beyond a reservation: locally, if that is where the
// reservation is still.
func (l *Limiter) owe(ctx context.Context, charges []store.Charge, r *receipt) ([]bucket.Snapshot, bool, error) {
	mode := Mode{MaxWait: bucket.Forced, Within: r.within}
	for i := range r.enforced {
		if a := r.enforced[i].account; a != nil && a.IsOpen() {
			snaps, _, allowed, err := l.outage.Take(ctx, nil, charges, mode, nil, new(outage.Trip))
			return snaps, allowed, err
		}
	}
	return l.takeFresh(ctx, charges, mode)
}

// nothing is kept of what is given back as a whole.
func nothing(*expense) bucket.Tokens { return 0 }
