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

// takeClaims takes the costs of claims from the store and records the answer in the claims' statuses. If the
// memory proves that the store would deny, takeClaims denies without calling the store, even during an outage.
func (l *Limiter) takeClaims(ctx context.Context, e *evaluation, claims []claim, mode Mode) (allowed bool, err error) {
	mode.Within = e.within // set first, because a copy of mode waits for the last write to it
	charges := e.charge(claims, l.config.Scale)
	if e.slots {
		e.setSlots(charges, mode)
	}
	memory := l.memoryFor(ctx)
	var began bucket.Instant
	if memory != nil && memory.Denies() {
		began = memory.Now()
		if snaps, denied := memory.Deny(e.snapshotBuffer(), charges, mode, began); denied {
			e.setSnapshots(snaps)
			return false, nil
		}
	}
	local := false
	if l.outage != nil {
		// The trip starts first. While this take waits for the charge of one key, a local bucket may start for another.
		if local = hasLocal(claims); local {
			l.outage.StartTrip(&e.trip, charges, mode)
		}
		if mode.Within, err = l.recoverKeys(ctx, charges, mode.Within); err != nil {
			return false, err
		}
	}
	noted := memory != nil && (local || memory.Denies())
	var asked seen.StartedTake
	if noted {
		asked = memory.StartTake(began)
	}
	var snaps []bucket.Snapshot
	if e.hold == nil {
		snaps, allowed, err = l.storeFor(e.sharded).Take(ctx, e.snapshotBuffer(), charges, mode)
	} else {
		snaps, allowed, err = e.hold(ctx, e, charges, mode)
	}
	if err != nil {
		return false, err
	}
	e.setSnapshots(snaps)
	if noted {
		answer := memory.Answer(asked, mode, allowed, snaps)
		for i, c := range e.order {
			memory.Record(&answer, &charges[i], &c.status.Snapshot, c.onStoreError == policy.OnStoreErrorLocal)
		}
	}
	if local {
		e.trip.End()
	}
	return allowed, nil
}

func (l *Limiter) takeCharges(ctx context.Context, charges []store.Charge, mode Mode) ([]bucket.Snapshot, bool, error) {
	return l.takeNoted(ctx, charges, mode, mode)
}

// takeNoted is takeCharges with the mode for the memory. A mode without the ID tells that this ID is new, so that the answer
// cannot be an old one.
func (l *Limiter) takeNoted(ctx context.Context, charges []store.Charge, mode, noted Mode) ([]bucket.Snapshot, bool, error) {
	memory := l.memoryFor(ctx)
	var asked seen.StartedTake
	if memory != nil {
		asked = memory.StartTake(memory.Now())
	}
	snaps, allowed, err := l.sharded.Take(ctx, nil, charges, mode)
	if err != nil || memory == nil {
		return snaps, allowed, err
	}
	answer := memory.Answer(asked, noted, allowed, snaps)
	for i := range charges {
		memory.Record(&answer, &charges[i], &snaps[i], false)
	}
	return snaps, allowed, nil
}

// refundCharges refunds charges in the store. It then invalidates the remembered answers, even after an error
// or inside a transaction, because the refund may have been applied.
func (l *Limiter) refundCharges(ctx context.Context, refunds []Refund, id string) error {
	err := l.sharded.Refund(ctx, refunds, id)
	if l.memory != nil {
		for i := range refunds {
			l.memory.Invalidate(refunds[i].Key)
		}
	}
	return err
}

func (l *Limiter) storeFor(sharded bool) Store {
	if sharded {
		return l.sharded
	}
	return l.store
}

// memoryFor returns the memory of recent store answers. It returns nil if the limiter has no memory, or if the
// caller may roll back calls with ctx.
func (l *Limiter) memoryFor(ctx context.Context) *seen.Memory {
	if l.memory == nil || l.inTransaction(ctx) {
		return nil
	}
	return l.memory
}

// inTransaction reports whether the caller may roll back the effects of a call with ctx. The answer then proves
// nothing about the buckets.
func (l *Limiter) inTransaction(ctx context.Context) bool {
	return l.joins != nil && l.joins.InTransaction(ctx)
}

func findOnStoreError(what policy.OnStoreError, claims []claim) *claim {
	for i := range claims {
		if claims[i].onStoreError == what {
			return &claims[i]
		}
	}
	return nil
}

func hasLocal(claims []claim) bool { return findOnStoreError(policy.OnStoreErrorLocal, claims) != nil }

// recoverKeys charges the local costs of the charges' keys to the store, and returns the time left of within. After
// an error, the caller must not call the store for the request either.
func (l *Limiter) recoverKeys(ctx context.Context, charges []store.Charge, within time.Duration) (time.Duration, error) {
	left, err := l.outage.Recover(ctx, charges, within)
	if err != nil && ctx.Err() != nil {
		err = contextError(ctx)
	}
	return left, err
}
