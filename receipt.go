// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/outage"
	"github.com/metehq/mete/policy"
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
	rule         *policy.Rule // without a name for the request's own charge
	limit        *policy.Limit
	taken        bucket.Taken   // identifies the take for a cancellation
	later        []bucket.Taken // further takes, which Cost includes: see [Reservation.Extend]
	asked        bucket.Tokens
	scaled       bucket.Tokens   // asked after scaling.
	settled      bool            // Settle replaces the unfixed part
	fixed        bucket.Tokens   // the part of asked that Settle keeps.
	byRule       bucket.Tokens   // the part of asked that the rule's limit charges.
	final        bucket.Tokens   // the cost by the response, after scaling.
	refused      *DebtError      // the part of final that the limit could not owe
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
		if holdsSlot(c.limit) { // [Slots] has it
			continue
		}
		x := expense{Charge: c.charge(), rule: c.status.Rule, limit: c.status.Limit, taken: c.status.Taken(), asked: c.asked}
		x.Cost = c.status.Cost
		x.scaled = x.Cost // not c.cost: an earlier attempt with this ID may have used another scale
		if c.local {
			x.local, x.account, x.share = true, c.account, c.status.Snapshot.Limit
		}
		x.setFixedPart(req, c, shadow)
		*list = append(*list, x)
	}
}

func (r *receipt) awaitsResponse() bool {
	for _, list := range [...][]expense{r.enforced, r.shadow} {
		for i := range list {
			if list[i].limit.AwaitsResponse() {
				return true
			}
		}
	}
	return false
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
	x.byRule = rest
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
	if !e.settled {
		return e.Cost
	}
	return e.scale(min(e.fixed+actual, bucket.MaxTokens))
}

// scale scales an amount like the cost of e.
func (e *expense) scale(amount bucket.Tokens) bucket.Tokens {
	if e.asked == e.scaled || e.asked == 0 {
		return amount
	}
	return proportion(amount, e.scaled, e.asked, true)
}

// refundExpenses refunds all but keep(e) of each expense in one call. Local costs that are not yet charged to
// the store go back to the local buckets.
func (l *Limiter) refundExpenses(ctx context.Context, expenses []expense, keep func(*expense) bucket.Tokens) error {
	if err := l.refundLater(ctx, expenses, keep); err != nil {
		return err
	}
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

// refundLater refunds the later takes of each expense, the last one first, until no expense is above keep or has later takes.
func (l *Limiter) refundLater(ctx context.Context, expenses []expense, keep func(*expense) bucket.Tokens) error {
	for {
		var refunds []Refund
		for i := range expenses {
			e := &expenses[i]
			if n := len(e.later); n > 0 && e.Cost > keep(e) {
				c := e.Charge
				c.Cost = min(e.Cost-keep(e), e.later[n-1].Cost)
				refunds = append(refunds, Refund{Charge: c, Taken: e.later[n-1]})
			}
		}
		if len(refunds) == 0 {
			return nil
		}
		slices.SortFunc(refunds, func(a, b Refund) int { return strings.Compare(a.Key, b.Key) })
		if err := l.refundCharges(ctx, refunds, ""); err != nil {
			return err
		}
		for i := range expenses {
			e := &expenses[i]
			if n := len(e.later); n > 0 && e.Cost > keep(e) {
				e.Cost -= min(e.Cost-keep(e), e.later[n-1].Cost)
				e.later = e.later[:n-1]
			}
		}
	}
}

// refundLocally refunds to the local bucket of e, and reports whether it did: see [outage.Fallback.Refund].
func (l *Limiter) refundLocally(ctx context.Context, e *expense, back bucket.Tokens) bool {
	given := l.outage.Refund(ctx, outage.Refund{Account: e.account, Share: e.share, Taken: e.taken, Cost: back})
	if given {
		e.Cost -= back
	}
	return given
}

func keepNothing(*expense) bucket.Tokens { return 0 }
