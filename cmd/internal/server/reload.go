// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// Reload has the policy read again, changed or not. It does not wait for it,
// and may be called from any goroutine.
func (s *Server) Reload() {
	select {
	case s.reload <- reloading{}:
	default: // one is due already
	}
}

// reloadNow has the policy read again, and returns once it is in force, or why the
// old one stays.
func (s *Server) reloadNow(ctx context.Context) error {
	if s.ending.Load() {
		return errEnding
	}
	done := make(chan error, 1)
	select {
	case s.reload <- reloading{done}:
	case <-s.settled:
		return errEnding
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-done:
		return err
	case <-s.settled:
		return errEnding
	case <-ctx.Done():
		return ctx.Err()
	}
}

// errEnding is why there is no answer. Whether there was still a change nobody knows.
var errEnding = fmt.Errorf("the server is ending: %w", context.Canceled)

// reloads count what became of changes of the policy.
type reloads struct {
	good, bad atomic.Uint64
	last      atomic.Int64                  // when one was last put in force, in Unix nanoseconds; 0 for never
	failing   atomic.Bool                   // the last one was not
	failure   atomic.Pointer[reloadFailure] // why one last was not
}

func (r *reloads) count(err error) {
	if err != nil {
		r.failure.Store(failureOf(err))
	}
	r.failing.Store(err != nil)
	if err != nil {
		r.bad.Add(1)
		return
	}
	r.last.Store(time.Now().UnixNano())
	r.good.Add(1)
}
