// SPDX-License-Identifier: Apache-2.0

// Package lane sends asks to a server, and batches asks that arrive while calls are in flight (group commit). An
// ask without competition is sent immediately, in the caller's goroutine.
package lane

import (
	"sync"
	"sync/atomic"
	"time"
)

// A Batch is a call in preparation. It is reused, by one goroutine at a time.
type Batch[A Ask] interface {
	// Reset empties the batch. The lane is locked. All asks that are added later arrived earlier than this call,
	// so a timestamp taken here is not too early for any of them.
	Reset()

	// Add appends an ask. It returns false if the ask and all later ones belong in the next call; an empty batch
	// accepts any ask. The lane is locked.
	Add(A) bool

	// Asks returns the asks since Reset, in their order.
	Asks() []A

	// Run makes the call with a timeout, and sets an answer or an error in each ask, including abandoned ones. It
	// returns the duration of the call.
	Run(timeout time.Duration) (took time.Duration)
}

// A Config configures lanes. All fields except Lanes and MinInFlight are required.
type Config[A Ask] struct {
	Lanes int // number of lanes; 0 is one

	// MaxBatch bounds the asks per call, and MaxQueue the waiting asks. Up to MinInFlight calls (0 is one) are
	// always permitted, and up to MaxInFlight if they do not slow each other down. All bounds are per lane.
	MaxBatch, MaxQueue, MinInFlight, MaxInFlight int

	Timeout  time.Duration   // of a call
	NewBatch func() Batch[A] // returns an unused batch
}

// Lanes are connections to one server, each with its own queue and calls. They are safe for concurrent use.
type Lanes[A Ask] struct {
	config  Config[A]
	batches sync.Pool // of Batch[A]
	lanes   []atomic.Pointer[Lane[A]]
	closed  atomic.Bool // later asks fail
	calls   sync.WaitGroup
	refused atomic.Int64
}

// New returns lanes. They have goroutines only while asks are waiting or in flight.
func New[A Ask](config Config[A]) *Lanes[A] {
	config.Lanes = max(config.Lanes, 1)
	config.MinInFlight = min(max(config.MinInFlight, 1), config.MaxInFlight)
	s := &Lanes[A]{config: config, lanes: make([]atomic.Pointer[Lane[A]], config.Lanes)}
	s.batches.New = func() any { return config.NewBatch() }
	return s
}

// At returns lane i of [Config.Lanes]. An unused lane uses no memory.
func (s *Lanes[A]) At(i int) *Lane[A] {
	if l := s.lanes[i].Load(); l != nil {
		return l
	}
	s.lanes[i].CompareAndSwap(nil, &Lane[A]{lanes: s, pace: pace{min: s.config.MinInFlight, max: s.config.MaxInFlight}})
	return s.lanes[i].Load()
}

// Close waits for all calls, including calls for queued asks. Later asks fail with [ErrClosed].
func (s *Lanes[A]) Close() {
	s.closed.Store(true)
	s.forEach(func(*Lane[A]) {}) // a call that started before has been counted
	s.calls.Wait()
}

// Stats holds statistics over all lanes.
type Stats struct {
	Waiting  int   // asks in the queues
	InFlight int   // calls in flight
	Refused  int64 // asks rejected by a full queue, since New
}

func (s *Lanes[A]) Stats() Stats {
	stats := Stats{Refused: s.refused.Load()}
	s.forEach(func(l *Lane[A]) {
		stats.Waiting += l.waiting
		stats.InFlight += l.inFlight
	})
	return stats
}

// forEach calls f with every used lane, locked.
func (s *Lanes[A]) forEach(f func(*Lane[A])) {
	for i := range s.lanes {
		if l := s.lanes[i].Load(); l != nil {
			l.mu.Lock()
			f(l)
			l.mu.Unlock()
		}
	}
}
