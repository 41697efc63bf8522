// SPDX-License-Identifier: Apache-2.0

package lane_test

import (
	"slices"
	"sync"
	"time"

	"github.com/metehq/mete/internal/lane"
)

// An ask expects its number as the answer.
type ask struct {
	lane.Ticket
	number, answer int
	apart          bool // it cannot share a call with another such ask
}

// A server answers each call after a delay.
type server struct {
	takes func(n int) time.Duration // for n asks; nil is a second
	fails error                     // of every ask

	mu       sync.Mutex
	calls    [][]int // the numbers per call, in the order of their start
	timeouts []time.Duration
	now      int // calls in progress
	most     int // maximum of calls in progress
}

// lanes returns lanes to s, with large defaults.
func (s *server) lanes(config lane.Config[*ask]) *lane.Lanes[*ask] {
	for _, f := range []struct {
		bound *int
		or    int
	}{{&config.MaxBatch, 100}, {&config.MaxQueue, 1000}, {&config.MaxInFlight, 16}} {
		if *f.bound == 0 {
			*f.bound = f.or
		}
	}
	config.Timeout = time.Minute
	config.NewBatch = func() lane.Batch[*ask] { return &batch{server: s} }
	return lane.New(config)
}

// begun returns the calls so far.
func (s *server) begun() [][]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// answer answers a call, and returns how long it takes.
func (s *server) answer(asks []*ask, timeout time.Duration) time.Duration {
	var numbers []int
	for _, a := range asks {
		numbers = append(numbers, a.number)
	}
	s.mu.Lock()
	s.calls, s.timeouts = append(s.calls, numbers), append(s.timeouts, timeout)
	s.now++
	s.most = max(s.most, s.now)
	s.mu.Unlock()
	took := time.Second
	if s.takes != nil {
		took = s.takes(len(asks))
	}
	pass(took)
	for i, a := range asks {
		a.answer, a.Err = numbers[i], s.fails
	}
	s.mu.Lock()
	s.now--
	s.mu.Unlock()
	return took
}

// A batch is a call of a server in preparation.
type batch struct {
	server *server
	asks   []*ask
	apart  bool
}

func (b *batch) Reset() { b.asks, b.apart = b.asks[:0], false }

func (b *batch) Add(a *ask) bool {
	if a.apart && b.apart {
		return false
	}
	b.asks, b.apart = append(b.asks, a), b.apart || a.apart
	return true
}

func (b *batch) Asks() []*ask { return b.asks }

func (b *batch) Run(timeout time.Duration) time.Duration { return b.server.answer(b.asks, timeout) }
