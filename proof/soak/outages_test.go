// SPDX-License-Identifier: Apache-2.0

package soak_test

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/metehq/mete/proof/meted"
)

const (
	// forever is the end of an open span.
	forever = math.MaxInt64

	// aftermath is for answers that are on their way when the store is there again.
	aftermath = time.Second
)

// A span is from one instant to another, in microseconds.
type span struct{ begin, end int64 }

func (s span) overlaps(o span) bool { return s.begin <= o.end && o.begin <= s.end }

// outages are the spans in which the store was down, or its breakers not closed
// yet. It is safe for concurrent use.
type outages struct {
	mu    sync.Mutex
	spans []span
}

func (o *outages) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.spans = append(o.spans, span{now(), forever})
}

func (o *outages) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.spans[len(o.spans)-1].end = now() + aftermath.Microseconds()
}

func (o *outages) list() []span {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]span(nil), o.spans...)
}

func (o *outages) count() int { return len(o.list()) }

// during reports whether the store was down at some instant of the span.
func (o *outages) during(s span) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, outage := range o.spans {
		if outage.overlaps(s) {
			return true
		}
	}
	return false
}

// breakStore kills the store at its times, and starts it again, empty.
func (w *world) breakStore(ctx context.Context) {
	began := time.Now()
	for _, at := range w.schedule.outages {
		if !pause(ctx, at-time.Since(began)) {
			return
		}
		w.outages.begin()
		w.redis.Kill()
		pause(ctx, w.schedule.outage)
		w.redis.Restart()
		for _, s := range w.servers() {
			if !w.eventually(ctx, func() bool { return w.metrics(s)[`mete_breaker_state{state="closed"}`] == 1 }) {
				w.wrongs.add("%s does not ask the store %v after it came back", s.name, meted.Patience)
			}
		}
		w.outages.end()
	}
}

// eventually polls a condition until its timeout. It returns true if ctx ends.
func (w *world) eventually(ctx context.Context, holds func() bool) bool {
	deadline := time.Now().Add(meted.Patience)
	for !holds() {
		if !pause(ctx, 100*time.Millisecond) {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}
