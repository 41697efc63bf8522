// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"context"
	"errors"
	"fmt"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/shards"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// Refund returns the request's cost to every limit that applies to it. A bucket never exceeds its capacity:
// extra tokens are lost. A refund with an ID is applied once within [store.RetryHorizon], so it can be retried
// after any error. Do not use the ID of a refunded take for another take. A refund with the ID of the take also releases
// the request's slots; without an ID, they are unknown.
//
// Refund uses the active policy and overrides. If they may have changed since the take, use [Limiter.Reserve]
// and [Reservation.Cancel] instead.
func (l *Limiter) Refund(ctx context.Context, req Request) error {
	return l.undo(&req, func(id string, charges []store.Charge) error {
		if l.outage != nil { // the cost may have been spent locally
			if _, err := l.recoverKeys(ctx, charges, l.config.Deadline); err != nil {
				return err
			}
		}
		var refunds []Refund
		for i := range charges {
			if c := &charges[i]; !holdsSlot(&c.Limit) || c.Slot != (bucket.SlotID{}) {
				refunds = append(refunds, Refund{Charge: *c})
			}
		}
		if len(refunds) == 0 {
			return nil
		}
		return l.refundCharges(ctx, refunds, id)
	})
}

// Reset fills every bucket that the request would be charged to.
func (l *Limiter) Reset(ctx context.Context, req Request) error {
	return l.undo(&req, func(_ string, charges []store.Charge) error { return l.reset(ctx, charges) })
}

// reset fills the buckets of charges. It drops their local costs. If the reset may be rolled back, it instead
// charges them to the store first.
func (l *Limiter) reset(ctx context.Context, charges []store.Charge) error {
	tentative := l.inTransaction(ctx)
	if l.outage != nil && tentative {
		if _, err := l.recoverKeys(ctx, charges, l.config.Deadline); err != nil {
			return err
		}
	}
	var keys []string
	for _, c := range charges {
		keys = shards.Keys(keys, c.Key, c.Shards)
	}
	err := l.store.Reset(ctx, keys)
	if l.memory != nil { // also after an error: the reset may have been applied
		for _, c := range charges {
			l.memory.Invalidate(c.Key)
		}
	}
	if err != nil {
		return err
	}
	if l.outage != nil && !tentative {
		l.outage.Drop(charges)
	}
	return nil
}

// ResetRule fills the buckets of all keys of a rule, some of them per call. It returns the number of buckets
// removed from the store, including full ones. Start with an empty from, pass the returned next to the
// following call, and stop when next is empty: see [store.Clearer].
//
// Another process may still deny requests, or charge local costs, until it calls [Limiter.DropRule].
// Concurrent charges may or may not survive. Leased tokens return to their bucket in the background, but spent
// tokens of a lease stay spent.
//
// The error is a [policy.RuleError] if the policy has no such rule, and [errors.ErrUnsupported] if the store
// cannot clear whole rules. After any error, buckets may have been removed, and the reset can start again.
func (l *Limiter) ResetRule(ctx context.Context, rule, from string) (removed int64, next string, err error) {
	if ctx.Err() != nil {
		return 0, "", contextError(ctx)
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
	if forgetErr := l.forgetFamilies(ctx, families); err == nil { // also after an error: some buckets may be reset
		err = forgetErr
	}
	return removed, next, err
}

// DropRule discards this process's remembered denials, local costs and leases of a rule that another process
// has reset. It does nothing if the policy has no such rule.
func (l *Limiter) DropRule(ctx context.Context, rule string) error {
	families, err := l.families(rule)
	if err != nil {
		return nil
	}
	return l.forgetFamilies(ctx, families)
}

func (l *Limiter) families(rule string) ([]string, error) {
	m := l.policy.Load()
	if m == nil {
		return nil, &policy.RuleError{Name: rule}
	}
	return m.Families(rule)
}

func (l *Limiter) forgetFamilies(ctx context.Context, families []string) error {
	if holder, ok := store.As[store.FamilyDropper](l.store); ok {
		holder.DropFamilies(families)
	}
	switch {
	case l.outage != nil:
		return l.outage.DropFamilies(ctx, families)
	case l.memory != nil:
		l.memory.DropFamilies(families)
	}
	return nil
}

// undo calls f with the charges of the request, and then with the charges of its shadow rules. The calls are
// separate because a shadow rule may share a key with the request's own charges.
func (l *Limiter) undo(req *Request, f func(id string, charges []store.Charge) error) error {
	e, err := l.evaluate(req)
	if err != nil {
		return err
	}
	defer e.release()
	id := ""
	if req.ID != "" {
		id = e.storeID(req.ID, Mode{})
		if e.slots {
			e.slotID(req)
		}
	}
	charge := func(claims []claim) []store.Charge {
		charges := e.charge(claims, nil)
		e.setSlots(charges, Mode{})
		return charges
	}
	if len(e.claims) > 0 {
		if err := f(id, charge(e.claims)); err != nil {
			return err
		}
	}
	for rest := e.shadow; len(rest) > 0; {
		claims := firstTake(rest)
		if err := f(id, charge(claims)); err != nil {
			return err
		}
		rest = rest[len(claims):]
	}
	return nil
}
