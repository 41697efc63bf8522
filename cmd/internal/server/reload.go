// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/metehq/mete/cmd/internal/metrics"
	"github.com/metehq/mete/policyyaml"
)

// A reloadRequest asks a source to read the policy again. If done is not nil, it gets the
// result, and has room for it.
type reloadRequest struct{ done chan<- error }

func (r reloadRequest) end(err error) {
	if r.done != nil {
		r.done <- err
	}
}

// reloads pass requests to read the policy again, and count the results.
type reloads struct {
	started  time.Time // of the server
	requests chan reloadRequest
	ended    chan struct{} // closed when the policy is no longer followed

	good, bad atomic.Uint64
	last      atomic.Int64                  // time of the last success, in Unix nanoseconds; 0 for none
	failing   atomic.Bool                   // the last one failed
	failure   atomic.Pointer[reloadFailure] // of the last one that failed
}

func newReloads() *reloads {
	return &reloads{started: time.Now(), requests: make(chan reloadRequest, 1), ended: make(chan struct{})}
}

// Reload has the policy read again, changed or not. It does not wait, and may be called from
// any goroutine.
func (s *Server) Reload() {
	select {
	case s.reloads.requests <- reloadRequest{}:
	default: // one is due already
	}
}

// reloadNow has the policy read again, and returns once it is active, or why the old one
// stays.
func (s *Server) reloadNow(ctx context.Context) error {
	if s.ending.Load() {
		return errReloadEnded
	}
	r := s.reloads
	done := make(chan error, 1)
	select {
	case r.requests <- reloadRequest{done}:
	case <-r.ended:
		return errReloadEnded
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-done:
		return err
	case <-r.ended:
		return errReloadEnded
	case <-ctx.Done():
		return ctx.Err()
	}
}

// errReloadEnded is the result of a reload that came too late: it may have happened or not.
var errReloadEnded = fmt.Errorf("the server is ending: %w", context.Canceled)

// count counts the result of a change of the policy.
func (r *reloads) count(err error) {
	r.failing.Store(err != nil)
	if err != nil {
		r.failure.Store(failureOf(err))
		r.bad.Add(1)
		return
	}
	r.last.Store(time.Now().UnixNano())
	r.good.Add(1)
}

// stats are the counts. The first policy became active when the server started.
func (r *reloads) stats() metrics.Reloads {
	m := metrics.Reloads{Applied: r.good.Load(), Failed: r.bad.Load(), Failing: r.failing.Load(), At: r.started}
	if last := r.last.Load(); last != 0 {
		m.At = time.Unix(0, last)
	}
	return m
}

// A reloadFailure is why a policy was not put in force.
type reloadFailure struct {
	at       time.Time
	mistakes []string
}

// failureOf says what is wrong in lines, as the log does.
func failureOf(err error) *reloadFailure {
	f := &reloadFailure{at: time.Now().UTC()}
	mistakes, ok := errors.AsType[policyyaml.Errors](err)
	if !ok {
		f.mistakes = strings.Split(err.Error(), "\n")
		return f
	}
	for _, m := range mistakes[:min(len(mistakes), maxLoggedErrors)] {
		m.Value = loggable(m.Path, m.Value)
		f.mistakes = append(f.mistakes, m.String())
	}
	return f
}
