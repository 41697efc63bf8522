// SPDX-License-Identifier: Apache-2.0

// Package recovery charges local costs of an outage to the store in the background, so that programs need no
// loop of their own.
package recovery

import (
	"context"
	"sync"
	"time"

	"github.com/metehq/mete"
)

const (
	// Interval is the time between attempts while there are local costs.
	Interval = time.Second

	// closeTimeout bounds the last attempts, and closePause is the time between them. A new connection to a busy
	// server can take longer than a second.
	closeTimeout = 3 * time.Second
	closePause   = 50 * time.Millisecond
)

// A Loop calls [mete.Limiter.Recover] every [Interval], and immediately after [Loop.Wake]. Without local costs it
// reads one counter and does not call the store. Use [New]. It is safe for concurrent use.
type Loop struct {
	wake chan struct{}
	end  func() error // nil before Start
}

// New returns a loop without a limiter. A circuit breaker can already wake it.
func New() *Loop { return &Loop{wake: make(chan struct{}, 1)} }

// Start starts the goroutine of the loop, which ends with [Loop.Close]. Call it at most once.
func (l *Loop) Start(limiter *mete.Limiter) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { l.run(ctx, limiter) })
	l.end = sync.OnceValue(func() error {
		cancel()
		running.Wait()
		return ChargeRest(limiter)
	})
}

// ChargeRest charges the remaining local costs for at most 3 seconds, because no other process knows them. The error
// is the last one of the store.
func ChargeRest(limiter *mete.Limiter) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	var failure error // of the store, which explains more than the timeout
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
	default: // already waking
	}
}

// Close ends the goroutine and then calls [ChargeRest]. Later calls return the same error.
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
		_ = limiter.Recover(ctx) // retried after the next interval
	}
}
