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

	mu       sync.Mutex // guards the fields below
	rows     map[string]bucket.Row
	admitted memory
}

// NewModel returns an empty store with the clock now.
func NewModel(now func() bucket.Instant) *Model {
	return &Model{now: now, rows: map[string]bucket.Row{}, admitted: memory{takes: map[string]taken{}}}
}

// DeriveKey implements [store.KeyDeriver] without a secret, for tests.
func (s *Model) DeriveKey(_ context.Context, purpose string) ([sha256.Size]byte, error) {
	return sha256.Sum256([]byte(purpose)), nil
}

func (s *Model) Take(_ context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, name := s.now(), ""
	if mode.ID != "" && !mode.DryRun {
		name = nameOf(mode.ID, charges)
		if snaps, ok := s.admitted.recall(name, now); ok {
			return append(dst, snaps...), true, nil
		}
	}
	states, fresh := make([]bucket.State, len(charges)), make([]bool, len(charges))
	costs := make([]bucket.Charge, len(charges))
	for i, c := range charges {
		states[i], fresh[i] = s.rows[c.Key].StateFor(&c.Limit, now)
		costs[i] = bucket.Charge{Limit: c.Limit, Cost: c.Cost}
	}
	if mode.UpTo {
		lowerCosts(costs, states, now)
	}
	if mode.DryRun {
		allowed := true
		for i, c := range costs {
			snap := c.Limit.Peek(states[i], now, c.Cost, mode.MaxWait)
			dst, allowed = append(dst, snap), allowed && snap.Allowed
		}
		return dst, allowed, nil
	}
	first := len(dst)
	dst, allowed := bucket.TakeAll(dst, states, costs, now, mode.MaxWait)
	for i := range costs {
		c := &costs[i]
		switch key := charges[i].Key; {
		case allowed:
			s.rows[key] = s.rows[key].WithState(&c.Limit, states[i], now, c.Cost)
		case fresh[i]: // otherwise the next take would open a new account again
			s.rows[key] = s.rows[key].WithState(&c.Limit, states[i], now, 0)
		}
	}
	if allowed && name != "" {
		s.admitted.remember(name, now, dst[first:])
	}
	return dst, allowed, nil
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
		removed++
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
		row := s.rows[r.Key]
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
