// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// A Reservation is what [Limiter.Reserve] decided. Where it is Allowed, its cost
// is spent: settle it when the true cost is known, cancel it if nothing comes of
// it, or leave it be. It is safe for concurrent use.
//
// Settle and Cancel of one that was denied do nothing. A reservation keeps what
// it needs to know: neither a new policy nor a new [Config.Scale] confuses it. If
// its request had an ID, only one of those who reserve by it may settle or cancel.
type Reservation struct {
	Decision

	limiter *Limiter

	mu    sync.Mutex // guards the fields below, and serializes calls
	over  bool
	spent receipt
}

// Reserve takes as [Limiter.Take] does, and keeps in mind what it took: for work
// whose cost is known only when it is done. With a [Request.MaxWait], the work may
// start after the reservation's Wait.
func (l *Limiter) Reserve(ctx context.Context, req Request) (*Reservation, error) {
	r := &Reservation{limiter: l}
	if err := l.take(ctx, &req, Mode{MaxWait: max(req.MaxWait, 0)}, &r.spent, &r.Decision); err != nil {
		return nil, err
	}
	return r, nil
}

// Settle corrects the cost to what was used in fact: what was not used is given
// back, and what was used beyond is charged as a debt, as [Limiter.Charge] does.
// It corrects the costs that the request decided: its Cost, one that a rule reads
// from an attribute, and its Charges but for those that are Fixed. Costs that a
// rule fixes are left as they are.
//
// The buckets get back what breaks no bound: see [bucket.Limit.Cancel]. A settlement
// before the work may start gives nothing back, nor does one while the bucket owes
// tokens to later work. Any other gives back what has not refilled since.
//
// A reservation can be settled once; then the error is [ErrSettled]. Where the
// excess cannot be owed, the error is a [DebtError]: nothing has changed, and
// Settle may be called again, later or with less. That holds for a failure of the
// store, too, where [Spent] of the error is [NotSpent]; after any other failure
// the reservation is over.
//
// The end of the work is often the end of its context: context.WithoutCancel is
// then what Settle needs.
func (r *Reservation) Settle(ctx context.Context, used Tokens) error {
	actual, ok := used.count()
	if !ok {
		return fmt.Errorf("%w: settle %v tokens: must be a multiple of 0.001 between 0 and %v", ErrCost, used, bucket.MaxTokens)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !r.Allowed:
		return nil
	case r.over:
		return ErrSettled
	}
	if err := r.chargeExcess(ctx, actual); err != nil {
		return err
	}
	keep := func(e *expense) bucket.Tokens { return e.target(actual) }
	if err := r.limiter.refund(ctx, r.spent.enforced, keep); err != nil {
		return r.failed(err)
	}
	r.over = true
	// A shadow rule has no say, and neither has a store that fails it.
	for i := range r.spent.shadow {
		e := r.spent.shadow[i : i+1]
		if excess := excess(e, actual); len(excess) > 0 {
			_, _, _ = r.limiter.takeFresh(ctx, excess, Mode{MaxWait: bucket.Forced, Within: r.spent.within})
		}
		_ = r.limiter.refund(ctx, e, keep)
	}
	return nil
}

// Cancel gives the whole cost back, the fixed costs of rules, too, as far as that
// breaks no bound: see [bucket.Limit.Cancel]. It does nothing
// where the reservation has been settled or canceled. A failure that spent
// nothing, in the sense of [Spent], may be repeated. The ID of a request that was
// canceled must not be used again.
func (r *Reservation) Cancel(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.Allowed || r.over {
		return nil
	}
	if err := r.limiter.refund(ctx, r.spent.enforced, nothing); err != nil {
		return r.failed(err)
	}
	r.over = true
	_ = r.limiter.refund(ctx, r.spent.shadow, nothing)
	return nil
}

// failed ends the reservation where a repetition might give back twice.
func (r *Reservation) failed(err error) error {
	r.over = Spent(err) != NotSpent
	return err
}

// excess are the charges of what was used beyond the expenses.
func excess(expenses []expense, actual bucket.Tokens) []store.Charge {
	var charges []store.Charge
	for i := range expenses {
		e := &expenses[i]
		if more := e.target(actual) - e.Cost; more > 0 {
			c := e.Charge
			c.Cost = more
			charges = append(charges, c)
		}
	}
	slices.SortFunc(charges, func(a, b store.Charge) int { return strings.Compare(a.Key, b.Key) })
	return charges
}

// chargeExcess charges what was used beyond the reservation, all of it or nothing.
func (r *Reservation) chargeExcess(ctx context.Context, actual bucket.Tokens) error {
	charges := excess(r.spent.enforced, actual)
	if len(charges) == 0 {
		return nil
	}
	snaps, allowed, err := r.limiter.owe(ctx, charges, &r.spent)
	if err != nil {
		return r.failed(err)
	}
	refusal := &DebtError{}
	for i := range r.spent.enforced {
		e := &r.spent.enforced[i]
		at := slices.IndexFunc(charges, func(c store.Charge) bool { return c.Key == e.Key })
		switch {
		case at < 0:
		case allowed:
			e.Cost += charges[at].Cost
			if e.taken == (bucket.Taken{}) { // it cost nothing so far
				e.taken = snaps[at].Taken()
			}
		default:
			refusal.Uncharged = max(refusal.Uncharged, e.fixed+actual-e.asked)
			if !snaps[at].Allowed && refusal.Rule == "" {
				refusal.Rule = e.rule
			}
		}
	}
	if !allowed {
		return refusal
	}
	return nil
}
