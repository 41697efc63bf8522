// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/metehq/mete"
)

// complaintInterval is the time between two records of one kind of failure. An
// upstream that is down fails every request, and the log is for people.
const complaintInterval = 10 * time.Second

// complain returns a function that logs errors of one kind, the first at once
// and then at most one each complaintInterval, with the number it stands for.
// Nothing about the request is logged.
//
// An error of the guard says only that nobody asked: it counts, and what is logged
// is the last one that says why.
func (s *Server) complain(msg string) func(error) {
	var (
		mu    sync.Mutex // guards the variables below
		last  time.Time
		count int
		cause error
	)
	return func(err error) {
		mu.Lock()
		defer mu.Unlock()
		count++
		if e, ok := errors.AsType[*mete.StoreError](err); !ok || e.Store != "guard" || cause == nil {
			cause = err
		}
		err = cause
		if now := time.Now(); now.Sub(last) >= complaintInterval {
			s.log.Error(msg, "error", err, "times", count)
			last, count = now, 0
		}
	}
}

// errFull is the error of a store that is at its bound.
var errFull = errors.New("new keys share one bucket for each limit; raise max_keys")

// onDecision counts decisions, and logs why some were made without the store, and
// that the store is full.
func (s *Server) onDecision() func(context.Context, *mete.Decision) {
	failed := s.complain("the store failed; the rules say what happens then")
	full := s.complain("the store is full")
	bounded := s.store.memory
	var overflowed atomic.Uint64 // as last seen
	return func(ctx context.Context, d *mete.Decision) {
		s.metrics.Count(d)
		s.watch.Decision(ctx, d)
		s.watches.Decided(ctx, d)
		for _, r := range d.Skipped {
			s.skips.record(s.log, r)
		}
		if d.Degraded && d.Err != nil {
			failed(d.Err)
		}
		if bounded == nil {
			return
		}
		if now := bounded.Stats().Overflowed; now != overflowed.Load() && overflowed.Swap(now) != now {
			s.lately.full.Store(time.Now().UnixNano())
			full(errFull)
		}
	}
}
