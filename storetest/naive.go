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

	mu     sync.Mutex // guards the field below
	states map[string]bucket.State
}

// NewNaive returns an empty store that asks now for the time.
func NewNaive(now func() bucket.Instant) *Naive {
	return &Naive{now: now, states: map[string]bucket.State{}}
}

// Take implements [mete.Store].
func (s *Naive) Take(_ context.Context, dst []bucket.Snapshot, charges []mete.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	states := make([]bucket.State, len(charges))
	costs := make([]bucket.Charge, len(charges))
	for i, c := range charges {
		states[i] = s.states[c.Key]
		costs[i] = bucket.Charge{Limit: c.Limit, Cost: c.Cost}
	}
	if mode.DryRun {
		allowed, now := true, s.now()
		for i, c := range charges {
			snap := c.Limit.Peek(states[i], now, c.Cost, mode.MaxWait)
			dst, allowed = append(dst, snap), allowed && snap.Allowed
		}
		return dst, allowed, nil
	}
	dst, allowed := bucket.TakeAll(dst, states, costs, s.now(), mode.MaxWait)
	if allowed {
		for i, c := range charges {
			s.states[c.Key] = states[i]
		}
	}
	return dst, allowed, nil
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
