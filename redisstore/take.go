// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/lease"
	"github.com/metehq/mete/store"
)

// Take implements [mete.Store].
func (s *Store) Take(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	switch {
	case len(charges) == 0:
		return dst, true, nil
	case s.canUseLeases(charges, mode):
		return s.takeLeased(ctx, dst, charges, mode)
	}
	return s.take(ctx, dst, charges, mode)
}

func (s *Store) take(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	l := s.laneFor(charges)
	if l == nil {
		return s.takeInParts(ctx, dst, charges, mode, bySlot)
	}
	a := s.newTake(charges, mode)
	if err := a.submit(ctx, l, mode.Within); err != nil {
		switch {
		case !isTryAgain(err):
			return dst, false, withOp(err, "take")
		case mode.ID != "": // its parts must keep the memory keys
			return s.takeInParts(ctx, dst, charges, mode, bySlot)
		}
		return s.takeInParts(ctx, dst, charges, mode, byKey)
	}
	dst, allowed := append(dst, a.snaps...), a.allowed
	a.release()
	return dst, allowed, nil
}

func (s *Store) newTake(charges []store.Charge, mode mete.Mode) *ask {
	a := newAsk(opTake, charges, mode)
	if mode.ID != "" && !mode.DryRun {
		a.memory = s.memoryKey(mode.ID, charges, charges[0].Key)
	}
	s.addLeases(a)
	s.addPenalties(a)
	return a
}

func (s *Store) addLeases(a *ask) {
	for i := range a.charges {
		if c := &a.charges[i]; c.Leased && lease.Leasable(&c.Limit) {
			for len(a.leases) < len(a.charges) {
				a.leases = append(a.leases, "")
			}
			a.leases[i] = s.leaseKey(c.Key)
		}
	}
}
