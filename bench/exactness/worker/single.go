// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"sync"
	"time"

	"github.com/metehq/mete/bench/exactness/wire"
)

// chain asks limiters of one key in turn.
type chain struct {
	take   wire.Single
	change func([]wire.Limit) error // nil if the limits cannot change
}

func (c chain) Take(ctx context.Context, keys []string) (bool, time.Duration, error) {
	return c.take.TakeEach(ctx, keys)
}

func (c chain) Change(limits []wire.Limit) error {
	if c.change == nil {
		return wire.ErrUnsupported
	}
	return c.change(limits)
}

// A keyed limiter is a map of limiters of single buckets, the usual code around a library that has no keys.
type keyed[L any] struct {
	make func(wire.Limit) L

	mu     sync.Mutex
	limits []wire.Limit
	byKey  []map[string]L
}

func newKeyed[L any](limits []wire.Limit, make func(wire.Limit) L) *keyed[L] {
	k := &keyed[L]{make: make, limits: limits}
	for range limits {
		k.byKey = append(k.byKey, map[string]L{})
	}
	return k
}

func (k *keyed[L]) get(limit int, key string) L {
	k.mu.Lock()
	defer k.mu.Unlock()
	l, ok := k.byKey[limit][key]
	if !ok {
		l = k.make(k.limits[limit])
		k.byKey[limit][key] = l
	}
	return l
}

// change calls set with the new limit of each limiter that exists.
func (k *keyed[L]) change(limits []wire.Limit, set func(L, wire.Limit)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.limits = limits
	for i, byKey := range k.byKey {
		for _, l := range byKey {
			set(l, limits[i])
		}
	}
}

// swapped holds a value that a change of the limits replaces.
type swapped[L any] struct {
	mu    sync.Mutex
	value L
}

func (s *swapped[L]) get() L {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.value
}

func (s *swapped[L]) set(value L) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.value = value
}
