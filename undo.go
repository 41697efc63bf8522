// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"context"
	"errors"
	"fmt"

	"github.com/metehq/mete/internal/shards"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// Refund gives the request's cost back to every limit it falls under. A bucket
// never holds more than its capacity: what exceeds it is gone. A refund with an
// ID is given once within [store.RetryHorizon], so it can be repeated after any error. The
// ID of a take that has been refunded must not be used for another take.
//
// It falls under what the policy and its overrides say now: where these may have
// changed since the request was charged, [Limiter.Reserve] and [Reservation.Cancel]
// give back what was taken.
func (l *Limiter) Refund(ctx context.Context, req Request) error {
	return l.undo(&req, func(id string, charges []store.Charge) error {
		if l.outage != nil { // what is given back may have been spent locally
			if _, err := l.recover(ctx, charges, l.config.Deadline); err != nil {
				return err
			}
		}
		refunds := make([]Refund, len(charges))
		for i := range charges {
			refunds[i].Charge = charges[i]
		}
		return l.giveBack(ctx, refunds, id)
	})
}

// Reset makes every bucket that the request falls under full.
func (l *Limiter) Reset(ctx context.Context, req Request) error {
	return l.undo(&req, func(_ string, charges []store.Charge) error { return l.reset(ctx, charges) })
}

// reset makes the buckets of charges full. It also drops what was spent of them
// locally, unless the reset may be rolled back: then that is charged before it.
func (l *Limiter) reset(ctx context.Context, charges []store.Charge) error {
	tentative := l.tentative(ctx)
	if l.outage != nil && tentative {
		if _, err := l.recover(ctx, charges, l.config.Deadline); err != nil {
			return err
		}
	}
	var keys []string
	for _, c := range charges {
		keys = shards.Keys(keys, c.Key, c.Shards)
	}
	err := l.store.Reset(ctx, keys)
	if l.memory != nil { // also after an error, which may have come after the reset
		for _, c := range charges {
			l.memory.Doubt(c.Key)
		}
	}
	if err != nil {
		return err
	}
	if l.outage != nil && !tentative {
		l.outage.Forget(charges)
	}
	return nil
}

// ResetRule makes the buckets of a rule full, for all its keys, some of them with each call.
// It returns the number of buckets that it removed from the store. Some may have been
// full already. The caller begins with an empty from, passes the returned next to the following
// call, and is done when next is empty: see [store.Clearer].
//
// A request that another process decides may still be denied, or charged for its local costs,
// until that process calls [Limiter.ForgetRule]. The charges of requests that are decided
// meanwhile may survive or not. Leased tokens return to their bucket in the background; spent ones of a
// lease stay missing.
//
// A rule that the policy does not have is a [policy.RuleError]. A store that cannot clear whole
// rules is [errors.ErrUnsupported]. After any error, buckets may have been removed, and the
// reset may begin again.
func (l *Limiter) ResetRule(ctx context.Context, rule, from string) (removed int64, next string, err error) {
	if ctx.Err() != nil {
		return 0, "", ended(ctx)
	}
	families, err := l.families(rule)
	if err != nil {
		return 0, "", err
	}
	clearer, ok := store.As[store.Clearer](l.store)
	if !ok {
		return 0, "", fmt.Errorf("mete: reset rule %q: %w by the store", rule, errors.ErrUnsupported)
	}
	removed, next, err = clearer.ClearFamilies(ctx, families, from)
	if forgetErr := l.forgetFamilies(ctx, families); err == nil { // also after an error: some may be full
		err = forgetErr
	}
	return removed, next, err
}

// ForgetRule drops the knowledge of this process about a rule that another process has reset:
// remembered denials, costs of an outage, and leases. It does nothing if the
// policy has no such rule.
func (l *Limiter) ForgetRule(ctx context.Context, rule string) error {
	families, err := l.families(rule)
	if err != nil {
		return nil
	}
	return l.forgetFamilies(ctx, families)
}

// families returns the families of a rule's keys.
func (l *Limiter) families(rule string) ([]string, error) {
	m := l.policy.Load()
	if m == nil {
		return nil, &policy.RuleError{Name: rule}
	}
	return m.Families(rule)
}

func (l *Limiter) forgetFamilies(ctx context.Context, families []string) error {
	if holder, ok := store.As[store.Forgetter](l.store); ok {
		holder.ForgetFamilies(families)
	}
	switch {
	case l.outage != nil:
		return l.outage.ForgetFamilies(ctx, families)
	case l.memory != nil:
		l.memory.ForgetFamilies(families)
	}
	return nil
}

// undo calls f with the charges of a request, and then with the charges of its shadow
// rules, because these may have keys that the request brings, too.
func (l *Limiter) undo(req *Request, f func(id string, charges []store.Charge) error) error {
	e, err := l.evaluate(req)
	if err != nil {
		return err
	}
	defer e.release()
	id := ""
	if req.ID != "" {
		id = e.storeID(req.ID, Mode{})
	}
	for _, claims := range [][]claim{e.claims, e.shadow} {
		if len(claims) == 0 {
			continue
		}
		if err := f(id, e.charge(claims, nil)); err != nil {
			return err
		}
	}
	return nil
}
