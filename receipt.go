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

// A receipt lists the expenses of an admitted request. Add does nothing on a nil receipt.
type receipt struct {
	waits    bool // record only requests that have to wait
	enforced []expense
	shadow   []expense
	within   time.Duration // the request's deadline
}

// An expense is the cost that one bucket was charged.
type expense struct {
	store.Charge              // Cost is the scaled amount spent now
	rule         string       // empty for the request's own charge
	taken        bucket.Taken // identifies the take for a cancellation
	asked        bucket.Tokens
	scaled       bucket.Tokens   // asked after scaling.
	settled      bool            // Settle replaces the unfixed part
	fixed        bucket.Tokens   // the part of asked that Settle keeps.
	local        bool            // spent from a local bucket.
	account      *outage.Account // of the local bucket; nil above the bound of accounts
	share        bucket.Limit    // the local bucket's limit
}

func (r *receipt) add(e *evaluation, req *Request, shadow bool) {
	list := &r.enforced
	if shadow {
		list = &r.shadow
	}
	for _, c := range e.order {
		x := expense{Charge: c.charge(), rule: c.status.Rule.Name, taken: c.status.Taken(), asked: c.asked}
		x.Cost = c.status.Cost
		x.scaled = x.Cost // not c.cost: an earlier attempt with this ID may have used another scale
		if c.local {
			x.local, x.account, x.share = true, c.account, c.status.Snapshot.Limit
		}
		x.setFixedPart(req, c, shadow)
		*list = append(*list, x)
	}
}

// setFixedPart splits the unscaled cost into the part that Settle replaces and the fixed part.
func (x *expense) setFixedPart(req *Request, c *claim, shadow bool) {
	rest := x.asked // the rule's part
	for _, own := range req.Charges {
		if own.Key != x.Key || shadow {
			continue
		}
		cost, _ := own.Cost.count() // valid: see Charge.check
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
	if len(req.Parts) > 0 {
		x.settled = x.settled || c.settled
		x.fixed += c.kept
		return
	}
	if req.Cost > 0 || !c.status.Limit.FixedCost() {
		x.settled = true
	} else {
		x.fixed += rest
	}
}

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

// refundExpenses refunds all but keep(e) of each expense in one call. Local costs that are not yet charged to
// the store go back to the local buckets.
func (l *Limiter) refundExpenses(ctx context.Context, expenses []expense, keep func(*expense) bucket.Tokens) error {
	var refunds []Refund
	for i := range expenses {
		e := &expenses[i]
		back := e.Cost - keep(e)
		// A refund without its take would be an admin refund, which only the capacity bounds.
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
	if err := l.refundCharges(ctx, refunds, ""); err != nil {
		return err
	}
	for i := range expenses {
		expenses[i].Cost = min(expenses[i].Cost, keep(&expenses[i]))
	}
	return nil
}

// refundLocally refunds to the local bucket of e, and reports whether it did: see [outage.Fallback.Refund].
func (l *Limiter) refundLocally(ctx context.Context, e *expense, back bucket.Tokens) bool {
	given := l.outage.Refund(ctx, outage.Refund{Account: e.account, Share: e.share, Taken: e.taken, Cost: back})
	if given {
		e.Cost -= back
	}
	return given
}

// chargeDebt charges the usage above a reservation. It uses the local bucket if the reservation is still there.
func (l *Limiter) chargeDebt(ctx context.Context, charges []store.Charge, r *receipt) ([]bucket.Snapshot, bool, error) {
	mode := Mode{MaxWait: bucket.Forced, Within: r.within}
	for i := range r.enforced {
		if a := r.enforced[i].account; a != nil && a.IsOpen() {
			snaps, _, allowed, err := l.outage.Take(ctx, nil, charges, mode, nil, new(outage.Trip))
			return snaps, allowed, err
		}
	}
	return l.takeCharges(ctx, charges, mode)
}

func keepNothing(*expense) bucket.Tokens { return 0 }
