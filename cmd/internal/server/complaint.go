// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"sync"
	"time"

	"github.com/metehq/mete"
)

// complaintInterval is the time between two records of one kind of failure. An
// upstream that is down fails every request, and the log is for people.
const complaintInterval = 10 * time.Second

// complain returns a function that logs errors of one kind, the first at once
// and then at most one each complaintInterval, with the number it stands for.
// Nothing about the request is logged.
func (s *Server) complain(msg string) func(error) {
	var (
		mu    sync.Mutex // guards the variables below
		last  time.Time
		count int
	)
	return func(err error) {
		mu.Lock()
		defer mu.Unlock()
		count++
		if now := time.Now(); now.Sub(last) >= complaintInterval {
			s.log.Error(msg, "error", err, "times", count)
			last, count = now, 0
		}
	}
}

// onDecision logs why decisions were made without the store.
func (s *Server) onDecision() func(context.Context, *mete.Decision) {
	complain := s.complain("the store failed; the rules say what happens then")
	return func(_ context.Context, d *mete.Decision) {
		if d.Degraded && d.Err != nil {
			complain(d.Err)
		}
	}
}
