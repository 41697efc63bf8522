// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"context"
	"crypto/rand"
	"slices"
	"strconv"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/outage"
	"github.com/metehq/mete/store"
)

// maxLater bounds the takes of one stream that its end can refund. It refunds later ones only within the costs of these.
const maxLater = 256

// Steps are the charges of a reservation after its first take. Each has an ID. If its answer is lost, the next call repeats
// it and so learns its outcome, before it computes further charges.
type steps struct {
	id   string // of the reservation; empty before the first step
	made int
	lost *step // the last one, if its outcome is unknown
}

// A step is a charge of several expenses at once.
type step struct {
	expenses []expense
	charges  []store.Charge
	mode     Mode
	until    bucket.Instant // the store remembers the ID until then
}

// isLost reports whether a call can still learn the outcome of a step.
func (s *steps) isLost() bool { return s.lost != nil }

// chargeStep charges expenses, and adds the charges to their costs if the store admits them.
func (l *Limiter) chargeStep(ctx context.Context, s *steps, expenses []expense, charges []store.Charge, mode Mode) ([]bucket.Snapshot, bool, error) {
	if s.id == "" {
		s.id = "step " + rand.Text() + " "
	}
	s.made++
	noted := mode
	mode.ID = s.id + strconv.Itoa(s.made)
	now := &step{expenses: expenses, charges: charges, mode: mode, until: l.now().Add(store.RetryHorizon)}
	snaps, allowed, err := l.takeNoted(ctx, charges, mode, noted)
	if err == nil && allowed {
		now.credit(snaps)
	}
	if err != nil && Spent(err) != NotSpent {
		s.lost = now
	}
	return snaps, allowed, err
}

// chargeDebt charges the usage above a reservation, and adds it to the costs of expenses. It uses the local bucket if the
// reservation is still there.
func (l *Limiter) chargeDebt(ctx context.Context, s *steps, expenses []expense, charges []store.Charge, r *receipt) ([]bucket.Snapshot, bool, error) {
	mode := Mode{MaxWait: bucket.Forced, Within: r.within}
	for i := range r.enforced {
		if a := r.enforced[i].account; a != nil && a.IsOpen() {
			snaps, _, allowed, err := l.outage.Take(ctx, nil, charges, mode, nil, new(outage.Trip))
			if err == nil && allowed {
				(&step{expenses: expenses, charges: charges}).credit(snaps)
			}
			return snaps, allowed, err
		}
	}
	return l.chargeStep(ctx, s, expenses, charges, mode)
}

// repeatStep repeats the step with a lost answer, if there is one. After the store may have dropped its ID, the cost is charged
// again rather than never.
func (l *Limiter) repeatStep(ctx context.Context, s *steps) error {
	again := s.lost
	if again == nil {
		return nil
	}
	if l.now().Add(again.mode.Within) >= again.until {
		s.lost = nil
		return nil
	}
	snaps, allowed, err := l.takeCharges(ctx, again.charges, again.mode)
	if err != nil {
		return err // also if this attempt spent nothing: the first one may have
	}
	if s.lost = nil; allowed {
		again.credit(snaps)
	}
	return nil
}

// credit adds an admitted step to the costs of its expenses.
func (s *step) credit(snaps []bucket.Snapshot) {
	for i := range s.expenses {
		e := &s.expenses[i]
		at := slices.IndexFunc(s.charges, func(c store.Charge) bool { return c.Key == e.Key })
		if at < 0 {
			continue
		}
		e.Cost += snaps[at].Cost
		switch taken := snaps[at].Taken(); {
		case e.taken == (bucket.Taken{}): // the reservation itself cost nothing
			e.taken = taken
		case !e.local && len(e.later) < maxLater:
			e.later = append(e.later, taken)
		}
	}
}
