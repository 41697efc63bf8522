// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"context"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/seen"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// ask asks the store about claims, and shows its answer in their statuses. It denies them by
// the memory where the store is sure to, also while the store does not answer.
func (l *Limiter) ask(ctx context.Context, e *evaluation, claims []claim, mode Mode) (allowed bool, err error) {
	mode.Within = e.within // set first, because a copy of mode waits for the last write to it
	charges := e.charge(claims, l.config.Scale)
	memory := l.memoryFor(ctx)
	var began bucket.Instant
	if memory != nil && memory.Denies() {
		began = memory.Now()
		if snaps, denied := memory.Deny(e.room(), charges, mode, began); denied {
			e.answer(snaps)
			return false, nil
		}
	}
	local := false
	if l.outage != nil {
		if mode.Within, err = l.recover(ctx, charges, mode.Within); err != nil {
			return false, err
		}
		local = anyLocal(claims)
	}
	noted := memory != nil && (local || memory.Denies())
	var asked seen.Asked
	if noted {
		asked = memory.Ask(began)
	}
	if local {
		l.outage.Depart(&e.trip, charges, mode)
	}
	snaps, allowed, err := l.storeFor(e.sharded).Take(ctx, e.room(), charges, mode)
	if err != nil {
		return false, err
	}
	e.answer(snaps)
	if noted {
		answer := memory.Answer(asked, mode, allowed, snaps)
		for i, c := range e.order {
			memory.Note(&answer, &charges[i], &c.status.Snapshot, c.onStoreError == policy.StoreErrorLocal)
		}
	}
	if local {
		e.trip.Land()
	}
	return allowed, nil
}

// takeFresh asks the store itself about charges that are in no evaluation.
func (l *Limiter) takeFresh(ctx context.Context, charges []store.Charge, mode Mode) ([]bucket.Snapshot, bool, error) {
	memory := l.memoryFor(ctx)
	var asked seen.Asked
	if memory != nil {
		asked = memory.Ask(memory.Now())
	}
	snaps, allowed, err := l.sharded.Take(ctx, nil, charges, mode)
	if err != nil || memory == nil {
		return snaps, allowed, err
	}
	answer := memory.Answer(asked, mode, allowed, snaps)
	for i := range charges {
		memory.Note(&answer, &charges[i], &snaps[i], false)
	}
	return snaps, allowed, nil
}

// giveBack refunds to the store. The memory doubts the buckets also after an error, which may
// have come after the refund, and after one in a transaction.
func (l *Limiter) giveBack(ctx context.Context, refunds []Refund, id string) error {
	err := l.sharded.Refund(ctx, refunds, id)
	if l.memory != nil {
		for i := range refunds {
			l.memory.Doubt(refunds[i].Key)
		}
	}
	return err
}

// storeFor returns the store to ask: itself, unless a charge has shards.
func (l *Limiter) storeFor(sharded bool) Store {
	if sharded {
		return l.sharded
	}
	return l.store
}

// memoryFor returns the memory of what the store showed, nil where a call with ctx neither
// uses it nor is noted in it: the limiter has none, or the caller may roll the call back.
func (l *Limiter) memoryFor(ctx context.Context) *seen.Memory {
	if l.memory == nil || l.tentative(ctx) {
		return nil
	}
	return l.memory
}

// tentative reports whether what the store decides with ctx may be rolled back: then it
// is no knowledge about the buckets.
func (l *Limiter) tentative(ctx context.Context) bool {
	return l.joins != nil && l.joins.InTransaction(ctx)
}

// firstThatSays returns the first claim with this on_store_error, nil for none.
func firstThatSays(what policy.OnStoreError, claims []claim) *claim {
	for i := range claims {
		if claims[i].onStoreError == what {
			return &claims[i]
		}
	}
	return nil
}

func anyLocal(claims []claim) bool { return firstThatSays(policy.StoreErrorLocal, claims) != nil }

// recover charges local costs of the charges' keys to the store, and returns the rest of
// within. After an error, the store is not to be asked about the request either.
func (l *Limiter) recover(ctx context.Context, charges []store.Charge, within time.Duration) (time.Duration, error) {
	left, err := l.outage.Recover(ctx, charges, within)
	if err != nil && ctx.Err() != nil {
		err = ended(ctx)
	}
	return left, err
}
