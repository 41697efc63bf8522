// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
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
	Charge               // Cost is what is spent of it now, scaled
	rule    string       // empty where the request brought the charge
	taken   bucket.Taken // what its cancellation names
	asked   bucket.Tokens
	scaled  bucket.Tokens // what asked became
	settled bool          // by what was used in fact
	fixed   bucket.Tokens // the part of asked that is not settled
	local   bool          // from the local bucket
	account *account      // that it is in; nil where there are too many
	share   bucket.Limit  // of the local bucket
}

// note adds what the charges in s have spent.
func (r *receipt) note(s *scratch, req *Request, shadow bool) {
	if r == nil {
		return
	}
	list := &r.enforced
	if shadow {
		list = &r.shadow
	}
	for i, c := range s.charges {
		e := expense{Charge: c, taken: s.snaps[i].Taken(), asked: s.cost(i), scaled: c.Cost}
		e.Cost = s.snaps[i].Cost
		if len(s.accounts) > 0 {
			e.local, e.account, e.share = true, s.accounts[i], s.snaps[i].Limit
		}
		var match *policy.Match
		if at := s.order[i]; at < s.enforced {
			match = &s.matches[at]
			e.rule = match.Rule.Name
		}
		e.divide(req, match)
		*list = append(*list, e)
	}
}

// divide says which part of what was asked for is settled: that which the
// request decided.
func (e *expense) divide(req *Request, match *policy.Match) {
	rest := e.asked // the rule's
	for _, c := range req.Charges {
		if c.Key != e.Key || match != nil && match.Shadow {
			continue
		}
		rest -= c.Cost
		if c.Fixed {
			e.fixed += c.Cost
		} else {
			e.settled = true
		}
	}
	if match == nil {
		return
	}
	if req.Cost > 0 || !match.Limit.FixedCost() {
		e.settled = true
	} else {
		e.fixed += rest
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
		if back <= 0 || e.taken == (bucket.Taken{}) || e.local && l.fallback.refund(ctx, e, back) {
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
	if err := l.store.Refund(ctx, refunds, ""); err != nil {
		return err
	}
	for i := range expenses {
		expenses[i].Cost = min(expenses[i].Cost, keep(&expenses[i]))
	}
	return nil
}

// nothing is kept of what is given back as a whole.
func nothing(*expense) bucket.Tokens { return 0 }
