// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// AwaitsResponse reports whether the response determines the final charge of r (charge_on, or a cost in the
// response). The caller should then call [Reservation.Finish] or [Reservation.FinishSoon].
func (r *Reservation) AwaitsResponse() bool { return r.Allowed && r.awaits }

// NeedsEnd reports whether the final charge depends on the rest of the response: on its size, or on a field that its
// trailer may have.
func (r *Reservation) NeedsEnd(res *policy.Response) bool {
	needs := func(e expense) bool { return e.limit.NeedsEnd(res) }
	return slices.ContainsFunc(r.spent.enforced, needs) || slices.ContainsFunc(r.spent.shadow, needs)
}

// Finish settles each limit that is charged by the response, such as limits with charge_on. It refunds the request if
// a limit's charge_on does not list the outcome, and settles the cost that the response names. Other limits keep
// their charge.
//
// Refunds and debts are as in [Reservation.Settle]. If a limit cannot owe a higher cost, it pays as much as it has.
//
// Finish also releases the request's slots. Apart from that, it does nothing if the reservation is settled, canceled or
// finished. After an error that spent nothing ([Spent]), and after an error of a charge, the call may be repeated: it charges
// nothing twice. After an error of a refund, the request keeps its charges.
//
// The request's context has often ended before Finish is called: pass context.WithoutCancel(ctx).
func (r *Reservation) Finish(ctx context.Context, res policy.Response) error {
	defer r.Slots.ReleaseSoon(ctx)
	if !r.setFinalCosts(&res) {
		return nil
	}
	_, err := r.finish(ctx, true)
	return err
}

// setFinalCosts computes the final cost of every expense. The fields of the response may change afterwards. It returns
// false if the reservation does not await a response.
func (r *Reservation) setFinalCosts(res *policy.Response) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.AwaitsResponse() || r.over {
		return false
	}
	observe := !r.observed
	r.observed = true
	after := durationUntil(r.limiter.now(), r.begun)
	for _, list := range [...][]expense{r.spent.enforced, r.spent.shadow} {
		for i := range list {
			list[i].setFinalCost(res)
			if l := list[i].limit; observe && l.AwaitsResponse() {
				l.ObserveResponse(after)
			}
		}
	}
	return true
}

func (e *expense) setFinalCost(res *policy.Response) {
	e.final = e.scaled
	if !e.limit.AwaitsResponse() {
		return
	}
	if final := e.limit.FinalCost(e.byRule, res); final != e.byRule {
		e.final = e.scale(min(e.asked-e.byRule+final, bucket.MaxTokens))
	}
}

// finish applies the final costs. It reports whether a later call can resolve its error. It reports such an error to
// [Config.OnSettlement] only if last is set.
func (r *Reservation) finish(ctx context.Context, last bool) (again bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return false, nil
	}
	if err = r.limiter.repeatStep(ctx, &r.steps); err == nil {
		err = r.applyFinalCosts(ctx, r.spent.enforced, &r.steps)
	}
	again = err != nil && (Spent(err) == NotSpent || r.steps.isLost())
	if again && !last {
		return again, err
	}
	r.over = !again
	r.reportSettlements(ctx, r.spent.enforced, false, err)
	// A shadow rule's store error is not the caller's.
	r.reportSettlements(ctx, r.spent.shadow, true, r.applyFinalCosts(ctx, r.spent.shadow, new(steps)))
	return again, err
}

// applyFinalCosts charges and refunds the differences to the final costs. Each limit pays for itself: one that cannot owe
// its part does not exempt the others.
func (r *Reservation) applyFinalCosts(ctx context.Context, expenses []expense, s *steps) error {
	for i := range expenses {
		e := &expenses[i]
		if more := e.final - e.Cost; e.limit.AwaitsResponse() && more > 0 && e.refused == nil {
			if err := r.chargeMore(ctx, s, expenses[i:i+1], more); err != nil {
				return err
			}
		}
	}
	return r.limiter.refundExpenses(ctx, expenses, func(e *expense) bucket.Tokens {
		if e.limit.AwaitsResponse() {
			return e.final
		}
		return e.Cost
	})
}

// chargeMore charges one expense a debt or, if the limit cannot owe that much, the tokens that it has.
func (r *Reservation) chargeMore(ctx context.Context, s *steps, one []expense, more bucket.Tokens) error {
	e := &one[0]
	c := e.Charge
	c.Cost, c.Await = more, 0
	c.Penalty = nil // a settlement neither obeys a penalty nor starts one
	var refused *DebtError
	before := e.Cost
	_, allowed, err := r.limiter.chargeDebt(ctx, s, one, []store.Charge{c}, &r.spent)
	if err == nil && !allowed {
		refused = &DebtError{Rule: e.rule.Name, Uncharged: more}
		_, _, err = r.limiter.chargeStep(ctx, s, one, []store.Charge{c}, Mode{UpTo: true, Within: r.spent.within})
	}
	if err != nil {
		return err // a later call tries both again
	}
	if e.refused = refused; refused != nil {
		refused.Uncharged -= e.Cost - before
	}
	return nil
}

func (r *Reservation) reportSettlements(ctx context.Context, expenses []expense, shadow bool, err error) {
	hook := r.limiter.config.OnSettlement
	if hook == nil {
		return
	}
	for i := range expenses {
		e := &expenses[i]
		if !e.limit.AwaitsResponse() {
			continue
		}
		s := policy.Settlement{Rule: e.rule, Limit: e.limit, Key: e.Key, Shadow: shadow, Reserved: e.scaled, Charged: e.Cost, Err: err}
		if err == nil && e.refused != nil && e.refused.Uncharged > 0 {
			s.Err = e.refused
		}
		hook(ctx, &s)
	}
}

// FinishSoon is [Reservation.Finish] for adapters, at the end of a response. It waits for the store no longer than a take
// may, and finishes the rest in the background. If the store was not reached, or the answer to a charge is lost, it tries
// again for half a minute. If the answer to a refund is lost, it does not try again, because that could refund twice. The
// charge then stays. At most
// 4096 requests are settled in the background; others get a single attempt. FinishSoon may come before the end of a
// response, so it keeps the request's slots: see [Slots.ReleaseSoon].
func (r *Reservation) FinishSoon(ctx context.Context, res policy.Response) {
	if !r.AwaitsResponse() || !r.setFinalCosts(&res) {
		return
	}
	r.limiter.finishSoon(ctx, r.patience(), func(ctx context.Context, last bool) (again bool, err error) {
		return r.finish(ctx, last)
	}, r.giveUp)
}

// patience is how long the end of a response may wait for the store.
func (r *Reservation) patience() time.Duration {
	return cmp.Or(r.spent.within, policy.DefaultDeadline) // only shadow rules apply, and set none
}

// giveUp ends the reservation, which keeps its charges.
func (r *Reservation) giveUp(ctx context.Context, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return
	}
	r.over = true
	r.reportSettlements(ctx, r.spent.enforced, false, errors.Join(errors.New("mete: finish: no attempt succeeded in time"), err))
}
