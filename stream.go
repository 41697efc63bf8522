// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"context"
	"slices"
	"strings"

	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// Streaming returns how to treat a streamed response of a language model, and false if no enforced limit counts its tokens. If
// several limits do, the most frequent charge and the strictest end apply, and all of them must allow to ask for usage.
func (r *Reservation) Streaming() (s policy.Streaming, ok bool) {
	if !r.AwaitsResponse() {
		return s, false
	}
	for i := range r.spent.enforced {
		of := r.spent.enforced[i].limit.Streaming()
		switch {
		case of == nil:
		case !ok:
			s, ok = *of, true
		default:
			s.Every, s.OnLimit = min(s.Every, of.Every), max(s.OnLimit, of.OnLimit)
			s.Partial, s.AskUsage = s.Partial && of.Partial, s.AskUsage && of.AskUsage
		}
	}
	return s, ok
}

// CountsTokens reports whether the tokens of a language model determine a charge of r, also of a rule in shadow.
func (r *Reservation) CountsTokens() bool {
	counts := func(e expense) bool { return e.limit.AI() }
	return r.AwaitsResponse() && (slices.ContainsFunc(r.spent.enforced, counts) || slices.ContainsFunc(r.spent.shadow, counts))
}

// Extend charges the tokens that a response has used so far, if they are more than the request has paid. All limits pay in one
// step, or none of them does and Extend returns false. With force, they pay even if they have no tokens left, and owe them.
// [Reservation.Finish] settles the rest.
//
// res needs Status and Usage. After an error, the tokens are charged by a later call: once, even if the store has applied the
// charge and its answer was lost. The end of ctx does not interrupt the charge. It waits for the store as long as a take may.
func (r *Reservation) Extend(ctx context.Context, res policy.Response, force bool) (allowed bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.AwaitsResponse() || r.over {
		return true, nil
	}
	ctx = context.WithoutCancel(ctx)
	if err := r.limiter.repeatStep(ctx, &r.steps); err != nil {
		return false, err
	}
	var charges []store.Charge
	for i := range r.spent.enforced {
		e := &r.spent.enforced[i]
		if !e.limit.AI() {
			continue
		}
		if e.setFinalCost(&res); e.final > e.Cost {
			c := e.Charge
			c.Cost, c.Await, c.Penalty = e.final-e.Cost, 0, nil
			charges = append(charges, c)
		}
	}
	if len(charges) == 0 {
		return true, nil
	}
	slices.SortFunc(charges, func(a, b store.Charge) int { return strings.Compare(a.Key, b.Key) })
	if force {
		_, allowed, err = r.limiter.chargeDebt(ctx, &r.steps, r.spent.enforced, charges, &r.spent)
	} else {
		_, allowed, err = r.limiter.chargeStep(ctx, &r.steps, r.spent.enforced, charges, Mode{Within: r.spent.within})
	}
	return allowed && err == nil, err
}
