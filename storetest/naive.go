// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// A Model store is a map under a mutex. It is the reference model of [Run] and useful in tests. It never
// evicts, so it is not suitable for a server.
type Model struct {
	now func() bucket.Instant

	mu        sync.Mutex // guards the fields below
	rows      map[string]bucket.Row
	slots     map[string]map[bucket.SlotID]bucket.Instant // their ends
	penalties map[string]bucket.PenaltyState
	admitted  memory
	holds     map[string]*modelHold
	histories int64 // the last ID of a bucket's history
}

// NewModel returns an empty store with the clock now.
func NewModel(now func() bucket.Instant) *Model {
	return &Model{
		now: now, rows: map[string]bucket.Row{}, slots: map[string]map[bucket.SlotID]bucket.Instant{}, penalties: map[string]bucket.PenaltyState{},
		admitted: memory{takes: map[string]taken{}}, holds: map[string]*modelHold{},
	}
}

// DeriveKey implements [store.KeyDeriver] without a secret, for tests.
func (s *Model) DeriveKey(_ context.Context, purpose string) ([sha256.Size]byte, error) {
	return sha256.Sum256([]byte(purpose)), nil
}

func (s *Model) Take(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if store.HasSlots(charges) {
		return s.takeSlots(dst, charges, mode)
	}
	return s.takeBuckets(ctx, dst, charges, mode)
}

func (s *Model) takeBuckets(_ context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	now, name := s.now(), ""
	if mode.ID != "" && !mode.DryRun {
		name = nameOf(mode.ID, charges)
		if snaps, ok := s.admitted.recall(name, now); ok {
			return append(dst, snaps...), true, nil
		}
	}
	first := len(dst)
	dst, allowed := s.take(dst, charges, mode, now, true)
	if allowed && name != "" {
		s.admitted.remember(name, now, dst[first:])
	}
	return dst, allowed, nil
}

// take is Take without IDs and slots. The take is denied unless slots is true.
func (s *Model) take(dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode, now bucket.Instant, slots bool) ([]bucket.Snapshot, bool) {
	states, fresh := make([]bucket.State, len(charges)), make([]bool, len(charges))
	costs := make([]bucket.Charge, len(charges))
	for i, c := range charges {
		states[i], fresh[i] = s.row(c.Key, now).StateFor(&c.Limit, now)
		costs[i] = bucket.Charge{Limit: c.Limit, Cost: c.Cost}
	}
	if mode.UpTo {
		lowerCosts(costs, states, now)
	}
	first, allowed := len(dst), true
	for i, c := range costs {
		snap := c.Limit.Peek(states[i], now, c.Cost, mode.MaxWait)
		dst, allowed = append(dst, snap), allowed && snap.Allowed
	}
	allowed = s.applyPenalties(dst[first:], charges, now, mode) && allowed && slots
	if mode.DryRun {
		return dst, allowed
	}
	if allowed {
		dst, _ = bucket.TakeAll(dst[:first], states, costs, now, mode.MaxWait)
	}
	for i := range costs {
		c := &costs[i]
		switch key := charges[i].Key; {
		case allowed:
			s.rows[key] = s.rows[key].WithState(&c.Limit, states[i], now, c.Cost)
			if taken := dst[first+i].Taken(); taken.Cost > 0 && charges[i].Await > 0 {
				s.histories++
				taken.History = s.histories
				s.rows[key] = s.rows[key].WithAwait(&c.Limit, now, taken, charges[i].Await)
			}
		case fresh[i]: // otherwise the next take would open a new account again
			s.rows[key] = s.rows[key].WithState(&c.Limit, states[i], now, 0)
		}
	}
	return dst, allowed
}

func (s *Model) applyPenalties(snaps []bucket.Snapshot, charges []store.Charge, now bucket.Instant, mode mete.Mode) (free bool) {
	free = true
	for i, c := range charges {
		if c.Penalty == nil || mode.MaxWait == bucket.Forced {
			continue
		}
		state, started := c.Penalty.Apply(&snaps[i], s.penalties[c.Key], now, !mode.DryRun && mode.MaxWait == 0)
		if free = free && now >= state.Until; started {
			s.penalties[c.Key] = state
		}
	}
	return free
}

// ClearFamilies implements [store.Clearer]. Each call is one atomic step.
func (s *Model) ClearFamilies(_ context.Context, families []string, from string) (removed int64, next string, err error) {
	if from != "" && from != naiveFrom {
		return 0, "", fmt.Errorf("storetest: clear families: from %q: %w", from, store.ErrFrom)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.rows {
		if !slices.Contains(families, store.Family(key)) {
			continue
		}
		if removed == naiveClears {
			return removed, naiveFrom, nil
		}
		delete(s.rows, key)
		s.dropHolds(key)
		removed++
	}
	for key := range s.slots {
		if slices.Contains(families, store.Family(key)) {
			delete(s.slots, key)
			removed++
		}
	}
	for key := range s.penalties {
		if slices.Contains(families, store.Family(key)) {
			delete(s.penalties, key)
		}
	}
	return removed, "", nil
}

const (
	naiveClears = 1000   // buckets that one call of ClearFamilies removes at most
	naiveFrom   = "more" // the next from while buckets are left
)

func lowerCosts(costs []bucket.Charge, states []bucket.State, now bucket.Instant) {
	there := bucket.MaxTokens
	for i, c := range costs {
		there = min(there, c.Limit.Peek(states[i], now, 0, 0).Remaining())
	}
	for i := range costs {
		costs[i].Cost = bucket.UpTo(costs[i].Cost, there)
	}
}

func (s *Model) Refund(_ context.Context, refunds []mete.Refund, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if id != "" {
		charges := make([]store.Charge, len(refunds))
		for i := range refunds {
			charges[i] = refunds[i].Charge
		}
		name := "refund " + nameOf(id, charges)
		if _, ok := s.admitted.recall(name, now); ok {
			return nil
		}
		s.admitted.remember(name, now, nil)
	}
	for i := range refunds {
		r := &refunds[i]
		if isSlot(&r.Charge) {
			delete(s.slots[r.Key], r.Slot)
			continue
		}
		row := s.row(r.Key, now)
		if r.Taken == (bucket.Taken{}) {
			row = row.Refund(now, r.Cost)
		} else {
			row = row.Cancel(&r.Limit, now, r.Cost, r.Taken)
		}
		s.rows[r.Key] = row
	}
	return nil
}

func (s *Model) Reset(_ context.Context, keys []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		delete(s.rows, key)
		delete(s.penalties, key)
		delete(s.slots, key)
		s.dropHolds(key)
	}
	return nil
}

// Refunds returns admin refunds of charges.
func Refunds(charges ...store.Charge) []mete.Refund {
	refunds := make([]mete.Refund, len(charges))
	for i, c := range charges {
		refunds[i].Charge = c
	}
	return refunds
}
