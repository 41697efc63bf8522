// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"time"

	"github.com/metehq/mete/internal/lane"
)

type batch struct {
	store *Store
	program
}

// newLanes returns the store's lanes. At least two calls may be in flight, so that Redis works on one while the
// next is written.
func (s *Store) newLanes() *lane.Lanes[*ask] {
	c := lane.Config[*ask]{
		MaxBatch: s.config.MaxBatch, MaxQueue: s.config.MaxQueue, MinInFlight: 2, MaxInFlight: s.config.MaxInFlight,
		Timeout:  s.config.Timeout,
		NewBatch: func() lane.Batch[*ask] { return &batch{store: s} },
	}
	if s.cluster {
		c.Lanes = slots
	}
	return lane.New(c)
}

func (b *batch) Reset() { b.reset(b.store.config.Prefix, b.store.now()) }

func (b *batch) Add(a *ask) bool { return b.size() <= maxKeys && b.add(a) }

func (b *batch) Asks() []*ask { return b.asks }

func (b *batch) Run(timeout time.Duration) time.Duration { return b.store.run(&b.program, timeout) }
