// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"context"
	"time"

	"github.com/metehq/mete/policy"
)

// take asks the store about matches and own charges, and returns their statuses
// in this order.
func (l *Limiter) take(ctx context.Context, s *scratch, matches []policy.Match, own []Charge, mode Mode) ([]Status, bool, error) {
	s.forget() // where it is asked again
	charges := s.charge(matches, own, l.config.Scale)
	if l.fallback != nil {
		var err error
		if mode.Within, err = l.fallback.recover(ctx, charges, mode.Within); err != nil {
			return nil, false, err
		}
	}
	local := l.fallback != nil && l.anyLocal(matches, own)
	if local {
		l.fallback.flying.depart(&s.trip, charges, mode)
	}
	snaps, allowed, err := l.store.Take(ctx, s.snaps[:0], charges, mode)
	if err != nil {
		return nil, false, err
	}
	s.snaps = snaps
	if local && !l.tentative(ctx) {
		l.see(s, matches, allowed && !mode.DryRun)
	}
	s.trip.land()
	return s.statuses(matches, len(matches)+len(own)), allowed, nil
}

// statuses are those of the charges, each at the place of its match or its own
// charge.
func (s *scratch) statuses(matches []policy.Match, n int) []Status {
	statuses := make([]Status, n)
	for i, at := range s.order {
		status := &statuses[at]
		status.Snapshot = s.snaps[i]
		if at < len(matches) {
			status.Rule, status.Limit = matches[at].Rule, matches[at].Limit
		} else {
			status.Rule, status.Limit = noRule, noLimit(&s.charges[i].Limit)
		}
	}
	return statuses
}

// within is how long the store may take: the shortest deadline of any rule that
// has a say.
func (l *Limiter) within(s *scratch) time.Duration {
	least := policy.MaxDeadline
	for i := range s.matches[:s.enforced] {
		least = min(least, s.matches[i].Rule.Deadline)
	}
	if len(s.own) > 0 {
		least = min(least, l.config.Deadline)
	}
	return least
}
