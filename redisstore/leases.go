// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/lease"
	"github.com/metehq/mete/store"
)

// startLeases enables leases, unless the clock is virtual: the lifetime of a lease is measured by two clocks,
// which must advance alike.
func (s *Store) startLeases() error {
	if s.config.Now != nil {
		return nil
	}
	var err error
	s.leases, err = lease.New(lease.Config{
		Lender: lender{s}, Node: rand.Text(), Share: s.config.LeaseShare, MinSlice: s.config.LeaseMin,
	})
	return err
}

// canUseLeases reports whether leases can answer a take. They cannot if the take has an ID, a wait, or a mode
// that needs Redis.
func (s *Store) canUseLeases(charges []store.Charge, mode mete.Mode) bool {
	if s.leases == nil || mode.MaxWait != 0 || mode.DryRun || mode.UpTo || mode.ID != "" {
		return false
	}
	for i := range charges {
		if canLease(&charges[i]) {
			return true
		}
	}
	return false
}

// canLease reports whether a lease can serve a charge. A take from a lease starts no penalty. Redis does not know its
// instant, so that it could refund little or nothing at a settlement.
func canLease(c *store.Charge) bool { return c.Leased && c.Penalty == nil && c.Await <= 0 }

// takeLeased takes tokens from leases where it can, and the rest from Redis. If Redis denies or fails, nothing is
// taken.
func (s *Store) takeLeased(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	if len(charges) == 1 {
		if snap, _, ok := s.leases.Take(charges[0].Key, &charges[0].Limit, charges[0].Cost); ok {
			return append(dst, snap), true, nil
		}
		return s.take(ctx, dst, charges, mode)
	}
	var held [store.MaxCharges]lease.Lot
	var snaps [store.MaxCharges]bucket.Snapshot
	rest := make([]store.Charge, 0, len(charges))
	for i := range charges {
		c, ok := &charges[i], false
		if canLease(c) {
			snaps[i], held[i], ok = s.leases.Take(c.Key, &c.Limit, c.Cost)
		}
		if !ok {
			rest = append(rest, *c)
		}
	}
	var answers []bucket.Snapshot
	allowed, err := true, error(nil)
	if len(rest) > 0 {
		answers, allowed, err = s.take(ctx, nil, rest, mode)
	}
	if err != nil {
		s.returnLots(charges, &held, &snaps, cmp.Or(mode.Within, s.config.Timeout))
		return dst, false, err
	}
	if !allowed {
		s.returnLots(charges, &held, &snaps, cmp.Or(mode.Within, s.config.Timeout))
	}
	for i := range charges {
		if held[i] != (lease.Lot{}) {
			dst = append(dst, snaps[i])
			continue
		}
		dst, answers = append(dst, answers[0]), answers[1:]
	}
	return dst, allowed, nil
}

// returnLots returns tokens to the leases, and restores their snapshots.
func (s *Store) returnLots(charges []store.Charge, held *[store.MaxCharges]lease.Lot, snaps *[store.MaxCharges]bucket.Snapshot, within time.Duration) {
	for i := range charges {
		if held[i] == (lease.Lot{}) {
			continue
		}
		c, taken := &charges[i], snaps[i].Taken()
		snaps[i] = snaps[i].WithoutCost()
		if !held[i].Untake() {
			s.undo.begin(undoing{
				refunds: []mete.Refund{{Charge: *c, Taken: taken}},
				memory:  s.undoneKey(c.Key, rand.Text(), 0),
				full:    c.Limit.TimeFor(c.Cost),
			}, within)
		}
	}
}
