// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"sync"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
)

// A Naive store is the plainest there can be: a map under a mutex. It is the
// model that [Run] compares other stores with, and handy in tests; it is never
// swept, so it is no store for a server.
type Naive struct {
	now func() bucket.Instant

	mu       sync.Mutex // guards the fields below
	states   map[string]bucket.State
	admitted memory
}

// NewNaive returns an empty store that asks now for the time.
func NewNaive(now func() bucket.Instant) *Naive {
	return &Naive{now: now, states: map[string]bucket.State{}, admitted: memory{takes: map[string]taken{}}}
}

// Take implements [mete.Store].
func (s *Naive) Take(_ context.Context, dst []bucket.Snapshot, charges []mete.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, name := s.now(), ""
	if mode.ID != "" && !mode.DryRun {
		name = nameOf(mode.ID, charges)
		if snaps, ok := s.admitted.recall(name, now); ok {
			return append(dst, snaps...), true, nil
		}
	}
	states := make([]bucket.State, len(charges))
	costs := make([]bucket.Charge, len(charges))
	for i, c := range charges {
		states[i] = s.states[c.Key]
		costs[i] = bucket.Charge{Limit: c.Limit, Cost: c.Cost}
	}
	if mode.UpTo {
		cut(costs, states, now)
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
	if allowed {
		for i, c := range charges {
			s.states[c.Key] = states[i]
		}
		if name != "" {
			s.admitted.remember(name, now, dst[first:])
		}
	}
	return dst, allowed, nil
}

// cut lowers costs to what the emptiest of their buckets holds.
func cut(costs []bucket.Charge, states []bucket.State, now bucket.Instant) {
	there := bucket.MaxTokens
	for i, c := range costs {
		there = min(there, c.Limit.Peek(states[i], now, 0, 0).Remaining())
	}
	for i := range costs {
		costs[i].Cost = bucket.UpTo(costs[i].Cost, there)
	}
}

// Refund implements [mete.Store].
func (s *Naive) Refund(_ context.Context, charges []mete.Charge) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for _, c := range charges {
		s.states[c.Key] = c.Limit.Refund(s.states[c.Key], now, c.Cost)
	}
	return nil
}

// Reset implements [mete.Store].
func (s *Naive) Reset(_ context.Context, keys []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		delete(s.states, key)
	}
	return nil
}
