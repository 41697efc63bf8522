// SPDX-License-Identifier: Apache-2.0

// Package recovery charges to a store what a limiter has spent in its place during an
// outage. A program that uses it needs no loop of its own.
package recovery

import (
	"context"
	"sync"
	"time"

	"github.com/metehq/mete"
)

const (
	// Interval is the time between two attempts while something is to be charged.
	Interval = time.Second

	// closeTimeout bounds the last attempts, and closePause is the time between two. An
	// attempt is short, and a new connection can take longer.
	closeTimeout = time.Second
	closePause   = 50 * time.Millisecond
)

// A Loop calls [mete.Limiter.Recover] every [Interval], and at once after [Loop.Wake].
// While nothing is to be charged it reads one counter and does not call the store. [New]
// makes it. It is safe for concurrent use.
type Loop struct {
	wake chan struct{}
	end  func() error // nil before Start
}

// New returns a loop without a limiter. A circuit breaker can wake it already.
func New() *Loop { return &Loop{wake: make(chan struct{}, 1)} }

// Start starts the goroutine of the loop, which ends with [Loop.Close]. It must be called
// once at most.
func (l *Loop) Start(limiter *mete.Limiter) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { l.run(ctx, limiter) })
	l.end = sync.OnceValue(func() error {
		cancel()
		running.Wait()
		return recoverLast(limiter)
	})
}

// recoverLast tries until everything is charged, or the time is up.
func recoverLast(limiter *mete.Limiter) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	var failure error // of the store: the end of the time explains less
	for {
		err := limiter.Recover(ctx)
		if err == nil {
			return nil
		}
		if failure == nil || ctx.Err() == nil {
			failure = err
		}
		select {
		case <-ctx.Done():
			return failure
		case <-time.After(closePause):
		}
	}
}

// Wake makes the loop try now, because the store answers again. It does not block.
func (l *Loop) Wake() {
	select {
	case l.wake <- struct{}{}:
	default: // it wakes already
	}
}

// Close ends the goroutine. It charges the rest first, for a second at most, because no
// other process knows of it. The error is the last one of the store. A second Close
// returns the same.
func (l *Loop) Close() error {
	if l.end == nil {
		return nil
	}
	return l.end()
}

func (l *Loop) run(ctx context.Context, limiter *mete.Limiter) {
	ticker := time.NewTicker(Interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
		case <-ticker.C:
		}
		_ = limiter.Recover(ctx) // after a failure the next interval follows
	}
}
