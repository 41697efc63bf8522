// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"context"

	"github.com/metehq/mete/internal/shards"
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
