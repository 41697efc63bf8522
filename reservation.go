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

// A Reservation is the result of [Limiter.Reserve]. If it is Allowed, its cost is spent. Settle it when the
// true cost is known, or cancel it if the work does not happen. To keep the reserved cost, do nothing. Both
// calls release the [Slots] of the request. A Reservation is safe for concurrent use.
//
// Settle and Cancel do nothing for a denied reservation. A new policy or [Config.Scale] does not affect
// existing reservations. If several callers reserve with one ID, only one of them may settle or cancel.
type Reservation struct {
	Decision

	limiter *Limiter
	awaits  bool           // see AwaitsResponse
	begun   bucket.Instant // by the limiter's clock; 0 unless it awaits a response

	mu       sync.Mutex // guards the fields below, and serializes calls
	over     bool
	observed bool // the limits know the time of the response
	spent    receipt
	steps    steps      // of enforced limits
	first    [1]expense // the memory of the enforced expenses, which are often one
}

// Reserve is [Limiter.Take] for work with a cost that is known only afterwards. With a [Request.MaxWait], the
// work may start after the reservation's Wait.
func (l *Limiter) Reserve(ctx context.Context, req Request) (*Reservation, error) {
	r := &Reservation{limiter: l}
	r.spent.enforced = r.first[:0]
	if err := l.take(ctx, &req, Mode{MaxWait: max(req.MaxWait, 0)}, &r.spent, &r.Decision); err != nil {
		return nil, err
	}
	if r.awaits = r.spent.awaitsResponse(); r.awaits {
		r.begun = l.now()
	}
	return r, nil
}

// Settle replaces the reserved cost by the used amount. It refunds unused tokens, and charges the excess as a
// debt, as [Limiter.Charge] does. It corrects the request's Cost, costs that a rule reads from an attribute,
// and Charges that are not Fixed. Fixed costs of rules stay.
//
// A refund never breaks the limit's bound: see [bucket.Limit.Cancel]. Settle refunds nothing before the work may
// start, or while later work waits for the bucket. Otherwise it refunds the tokens that have not refilled since the take.
//
// A second call returns [ErrSettled]. If a limit cannot owe the excess, the error is a [DebtError] and nothing
// has changed: call Settle again later or with a smaller amount. The same applies to a store error for which
// [Spent] returns [NotSpent], and to one of the excess: a repeated call charges it once. Any other error ends the
// reservation.
//
// The work's context has often ended before Settle is called: pass context.WithoutCancel(ctx).
func (r *Reservation) Settle(ctx context.Context, used Tokens) error {
	actual, ok := used.count()
	if !ok {
		return fmt.Errorf("%w: settle %v tokens: must be a multiple of 0.001 between 0 and %v", ErrCost, used, bucket.MaxTokens)
	}
	defer r.Slots.ReleaseSoon(ctx) // the work is over
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !r.Allowed:
		return nil
	case r.over:
		return ErrSettled
	}
	if err := r.limiter.repeatStep(ctx, &r.steps); err != nil {
		return err
	}
	if err := r.chargeExcess(ctx, actual); err != nil {
		return err
	}
	target := func(e *expense) bucket.Tokens { return e.target(actual) }
	if err := r.limiter.refundExpenses(ctx, r.spent.enforced, target); err != nil {
		return r.closeOnError(err)
	}
	r.over = true
	// A shadow rule does not affect the result, and neither does its store error.
	for i := range r.spent.shadow {
		e := r.spent.shadow[i : i+1]
		if excess := excessCharges(e, target); len(excess) > 0 {
			_, _, _ = r.limiter.takeCharges(ctx, excess, Mode{MaxWait: bucket.Forced, Within: r.spent.within})
		}
		_ = r.limiter.refundExpenses(ctx, e, target)
	}
	return nil
}

// Cancel refunds the whole cost, including fixed costs, without breaking a limit's bound: see
// [bucket.Limit.Cancel]. It does nothing if the reservation is already settled or canceled. After an error that
// spent nothing ([Spent]), the call may be repeated. Do not reuse the request's ID after Cancel.
func (r *Reservation) Cancel(ctx context.Context) error {
	defer r.Slots.ReleaseSoon(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.Allowed || r.over {
		return nil
	}
	if err := r.limiter.repeatStep(ctx, &r.steps); err != nil {
		return err
	}
	if err := r.limiter.refundExpenses(ctx, r.spent.enforced, keepNothing); err != nil {
		return r.closeOnError(err)
	}
	r.over = true
	_ = r.limiter.refundExpenses(ctx, r.spent.shadow, keepNothing)
	return nil
}

// closeOnError ends the reservation if a second attempt might refund twice, and returns err.
func (r *Reservation) closeOnError(err error) error {
	r.over = Spent(err) != NotSpent && !r.steps.isLost()
	return err
}

func excessCharges(expenses []expense, target func(*expense) bucket.Tokens) []store.Charge {
	var charges []store.Charge
	for i := range expenses {
		e := &expenses[i]
		if more := target(e) - e.Cost; more > 0 {
			c := e.Charge
			c.Cost, c.Await = more, 0
			charges = append(charges, c)
		}
	}
	slices.SortFunc(charges, func(a, b store.Charge) int { return strings.Compare(a.Key, b.Key) })
	return charges
}

func (r *Reservation) chargeExcess(ctx context.Context, actual bucket.Tokens) error {
	charges := excessCharges(r.spent.enforced, func(e *expense) bucket.Tokens { return e.target(actual) })
	if len(charges) == 0 {
		return nil
	}
	snaps, allowed, err := r.limiter.chargeDebt(ctx, &r.steps, r.spent.enforced, charges, &r.spent)
	if err != nil {
		return r.closeOnError(err)
	}
	if allowed {
		return nil
	}
	refusal := &DebtError{}
	for i := range r.spent.enforced {
		e := &r.spent.enforced[i]
		at := slices.IndexFunc(charges, func(c store.Charge) bool { return c.Key == e.Key })
		if at < 0 {
			continue
		}
		refusal.Uncharged = max(refusal.Uncharged, e.fixed+actual-e.asked)
		if !snaps[at].Allowed && refusal.Rule == "" {
			refusal.Rule = e.rule.Name
		}
	}
	return refusal
}
