// SPDX-License-Identifier: Apache-2.0

// Package lane brings asks to a server, and those that come while calls are on
// their way together in the next: group commit. Somebody alone has a call at once,
// in a goroutine of their own.
package lane

import (
	"sync"
	"sync/atomic"
	"time"
)

// A Batch is a call in the making. It is used again and again, by one goroutine at
// a time.
type Batch[A Ask] interface {
	// Reset makes the batch an empty one. What is added after it has been asked before
	// it, so that the time it is now is not too early for any of them. It is called
	// with the lane locked.
	Reset()

	// Add adds an ask to the end. It reports false where the ask is for the next
	// call, with all that came after it; an empty batch takes any. It is called with
	// the lane locked.
	Add(A) bool

	// Asks are those that were added since Reset, in their order.
	Asks() []A

	// Run makes the call, which it gives up after timeout, and puts an answer or an
	// error into every ask. An ask may have been left, and is still the batch's. Run
	// returns how long the call took.
	Run(timeout time.Duration) (took time.Duration)
}

// A Config says how lanes are used. Everything but Lanes and MinInFlight must be
// set.
type Config[A Ask] struct {
	Lanes int // how many there are; 0 is one

	// MaxBatch bounds the asks of one call, MaxQueue those that wait for one. Of calls
	// on their way there are up to MinInFlight, 0 being one, and up to MaxInFlight
	// where more do not slow each other down. All of them are for each lane.
	MaxBatch, MaxQueue, MinInFlight, MaxInFlight int

	Timeout  time.Duration   // of a call
	NewBatch func() Batch[A] // returns one that was not yet used
}

// Lanes are ways to one server, each with its own queue and calls. They are safe
// for concurrent use.
type Lanes[A Ask] struct {
	config  Config[A]
	batches sync.Pool // of Batch[A]
	lanes   []atomic.Pointer[Lane[A]]
	closed  atomic.Bool // nothing is asked any more
	calls   sync.WaitGroup
	refused atomic.Int64
}

// New returns lanes. They have goroutines only while somebody asks.
func New[A Ask](config Config[A]) *Lanes[A] {
	config.Lanes = max(config.Lanes, 1)
	config.MinInFlight = min(max(config.MinInFlight, 1), config.MaxInFlight)
	s := &Lanes[A]{config: config, lanes: make([]atomic.Pointer[Lane[A]], config.Lanes)}
	s.batches.New = func() any { return config.NewBatch() }
	return s
}

// At returns lane i of [Config.Lanes]. A lane that nobody asked for takes no room.
func (s *Lanes[A]) At(i int) *Lane[A] {
	if l := s.lanes[i].Load(); l != nil {
		return l
	}
	s.lanes[i].CompareAndSwap(nil, &Lane[A]{all: s, pace: pace{min: s.config.MinInFlight, max: s.config.MaxInFlight}})
	return s.lanes[i].Load()
}

// Close waits for the calls on their way, those of the asks in the queues among
// them. What is asked later fails with [ErrClosed].
func (s *Lanes[A]) Close() {
	s.closed.Store(true)
	s.each(func(*Lane[A]) {}) // who has not seen that yet has its call counted
	s.calls.Wait()
}

// Stats are how lanes are, taken together.
type Stats struct {
	Waiting  int   // asks in the queues
	InFlight int   // calls on their way
	Refused  int64 // asks that found a queue full, so far
}

// Stats returns how the lanes are.
func (s *Lanes[A]) Stats() Stats {
	stats := Stats{Refused: s.refused.Load()}
	s.each(func(l *Lane[A]) {
		stats.Waiting += l.waiting
		stats.InFlight += l.flying
	})
	return stats
}

// each calls f with every lane there is, locked.
func (s *Lanes[A]) each(f func(*Lane[A])) {
	for i := range s.lanes {
		if l := s.lanes[i].Load(); l != nil {
			l.mu.Lock()
			f(l)
			l.mu.Unlock()
		}
	}
}
