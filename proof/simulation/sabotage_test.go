// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/store"
)

// A sabotage is a bug that the test puts between the network and the store, to prove that the simulation finds it.
type sabotage struct {
	name   string
	find   string // begins the fault that must be found
	take   func(charges []store.Charge, mode *mete.Mode) []store.Charge
	refund func(refunds []mete.Refund) []mete.Refund
	settle func(s *memstore.Store, id string)
}

var sabotages = []sabotage{
	{name: "a repeated request is charged again", find: "G2: a repeated call", take: func(charges []store.Charge, mode *mete.Mode) []store.Charge {
		mode.ID = ""
		return charges
	}},
	{name: "a token too many is admitted", find: "conservation", take: func(charges []store.Charge, _ *mete.Mode) []store.Charge {
		charges[0].Cost = max(charges[0].Cost-bucket.Token, 0)
		return charges
	}},
	{name: "a bound is exceeded", find: "G1", take: func(charges []store.Charge, mode *mete.Mode) []store.Charge {
		if !isSlot(&charges[0]) {
			mode.MaxWait = max(mode.MaxWait, 100*time.Millisecond)
		}
		return charges
	}},
	{name: "a take is executed in part", find: "conservation", take: func(charges []store.Charge, _ *mete.Mode) []store.Charge {
		charges[len(charges)-1].Cost = 0
		return charges
	}},
	{name: "a refund is lost", find: "conservation", refund: func(refunds []mete.Refund) []mete.Refund { return nil }},
	{name: "a refund of an old take fills the bucket", find: "conservation", refund: func(refunds []mete.Refund) []mete.Refund {
		refunds[0].Cost *= 2
		refunds[0].Taken.Cost *= 2
		return refunds
	}},
	{name: "the marker of an ID is lost", find: "G2: client", take: func(charges []store.Charge, _ *mete.Mode) []store.Charge {
		for i := range charges {
			if isMarker(&charges[i]) {
				charges[i].Cost = 0
			}
		}
		return charges
	}},
	{name: "a slot is not released", find: "G13", refund: func(refunds []mete.Refund) []mete.Refund {
		refunds[0].Slot[0]++
		return refunds
	}},
	{name: "a hold is settled twice", find: "hold", settle: func(s *memstore.Store, id string) { _, _ = s.Settle(context.Background(), id, 0) }},
}

// A broken store is a memstore with a sabotage.
type broken struct {
	*memstore.Store
	bug *sabotage
}

func (b *broken) Take(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	if b.bug.take != nil && !mode.DryRun && !mode.Renew {
		charges = b.bug.take(append([]store.Charge(nil), charges...), &mode)
	}
	return b.Store.Take(ctx, dst, charges, mode)
}

func (b *broken) Refund(ctx context.Context, refunds []mete.Refund, id string) error {
	if b.bug.refund != nil {
		if refunds = b.bug.refund(append([]mete.Refund(nil), refunds...)); refunds == nil {
			return nil
		}
	}
	return b.Store.Refund(ctx, refunds, id)
}

func (b *broken) Settle(ctx context.Context, id string, actual ...bucket.Tokens) (store.HoldStatus, error) {
	if b.bug.settle != nil {
		b.bug.settle(b.Store, id)
	}
	return b.Store.Settle(ctx, id, actual...)
}

// Each bug is found within a few runs.
func TestSimulation_FindsBugs(t *testing.T) {
	for i := range sabotages {
		bug := &sabotages[i]
		t.Run(bug.name, func(t *testing.T) {
			for seed := range uint64(300) {
				for _, fault := range simulate(t, newSchedule(seed, *maxSteps), options{bug: bug}).faults {
					if strings.HasPrefix(fault, bug.find) {
						return
					}
				}
			}
			t.Errorf("300 runs did not find %q", bug.find)
		})
	}
}
