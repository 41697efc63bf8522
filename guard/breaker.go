// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/store"
	"github.com/sony/gobreaker/v2"
)

// A State is a state of the circuit breaker.
type State string

const (
	StateClosed   State = "closed"    // passes all calls
	StateHalfOpen State = "half-open" // passes a few calls as probes
	StateOpen     State = "open"      // rejects all calls
)

var states = [...]State{gobreaker.StateClosed: StateClosed, gobreaker.StateHalfOpen: StateHalfOpen, gobreaker.StateOpen: StateOpen}

var (
	errOpen     = fmt.Errorf("%w: circuit breaker is open", store.ErrUnavailable)
	errHalfOpen = fmt.Errorf("%w: circuit breaker is half-open, and other calls probe the store", store.ErrUnavailable)
	errPanic    = errors.New("guard: the store panicked")

	// errIgnored replaces errors that are not evidence about the store's health.
	errIgnored = errors.New("guard: ignored error")
)

const windowParts = 10

// A breaker wraps a circuit breaker of gobreaker and decides which errors count. A call of gobreaker costs two
// locks and an allocation. It is therefore used only from the first failure until a Window without failures.
type breaker struct {
	inner *gobreaker.TwoStepCircuitBreaker[struct{}]

	quiet atomic.Bool   // no recent failure: gobreaker is not used
	state atomic.Uint32 // copy of gobreaker's state, for use without its lock

	// Times in nanoseconds since begin.
	lastFailure    atomic.Int64 // last failure
	lastAnswer     atomic.Int64 // last answer; not updated while quiet
	failingSince   atomic.Int64 // first failure since the last answer; 0: none
	unhealthySince atomic.Int64 // first failure after quiet

	opened, rejected atomic.Uint64

	start time.Time
}

func newBreaker(c Config) *breaker {
	b := &breaker{start: time.Now()}
	b.quiet.Store(true)
	b.inner = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		MaxRequests:  uint32(c.Probes),
		Interval:     Window,
		BucketPeriod: Window / windowParts,
		Timeout:      c.OpenFor,
		ReadyToTrip: func(n gobreaker.Counts) bool {
			ended, now := n.TotalSuccesses+n.TotalFailures, int64(time.Since(b.start))
			row := n.ConsecutiveFailures >= uint32(c.Failures) && now-b.failingSince.Load() >= int64(c.MinFailing)
			half := ended >= MinCalls && 2*n.TotalFailures >= ended && now-b.unhealthySince.Load() >= int64(c.MinFailing)
			return row || half
		},
		IsExcluded: func(err error) bool { return err == errIgnored },
		OnStateChange: func(_ string, from, to gobreaker.State) { // gobreaker holds its lock
			b.state.Store(uint32(to))
			if to == gobreaker.StateOpen {
				b.opened.Add(1)
			}
			if c.OnChange != nil {
				c.OnChange(states[from], states[to])
			}
		},
	})
	return b
}

func (b *breaker) currentState() State { return states[b.state.Load()] }

type call struct {
	breaker       *breaker
	ctx           context.Context
	done          func(error) // nil if gobreaker does not count the call
	opened        uint64      // breaker.opened at the start
	shortDeadline bool        // the deadline is nearer than MinDeadline
	shortWithin   bool        // Mode.Within is shorter than MinDeadline
}

// admit admits a call, or returns an error. A positive within bounds the duration of the call.
func (b *breaker) admit(ctx context.Context, op string, within time.Duration) (call, error) {
	c := call{breaker: b, ctx: ctx, shortWithin: within > 0 && within < MinDeadline}
	if deadline, ok := ctx.Deadline(); ok {
		c.shortDeadline = time.Until(deadline) < MinDeadline
	}
	if c.opened = b.opened.Load(); b.quiet.Load() {
		return c, nil
	}
	var err error
	if c.done, err = b.inner.Allow(); err != nil {
		b.rejected.Add(1)
		if errors.Is(err, gobreaker.ErrTooManyRequests) {
			return c, newUnavailable(op, errHalfOpen)
		}
		return c, newUnavailable(op, errOpen)
	}
	return c, nil
}

func (c *call) finish(err *error) {
	if *err == nil && c.done == nil {
		return
	}
	c.record(*err)
}

func (c *call) record(err error) {
	b := c.breaker
	now := int64(time.Since(b.start))
	switch {
	case err == nil:
		b.lastAnswer.Store(now)
		b.failingSince.Store(0)
	case c.isIgnored(err), c.shortWithin && errors.Is(err, context.DeadlineExceeded) && b.answeredRecently(now):
		err = errIgnored
	}
	if err != nil && err != errIgnored {
		b.lastFailure.Store(now)
		b.failingSince.CompareAndSwap(0, now)
		if b.quiet.Swap(false) {
			b.unhealthySince.Store(now)
		}
		if c.done == nil && c.opened == b.opened.Load() { // else the call is from before the last opening, and not a probe
			c.done, _ = b.inner.Allow()
		}
	}
	if c.done != nil {
		c.done(err)
	}
	if err == nil && b.currentState() == StateClosed && now-b.lastFailure.Load() > int64(Window) {
		b.quiet.Store(true)
	}
}

// answeredRecently reports whether the store has answered a call within MinDeadline. While quiet, answers were
// not recorded, so it assumes one and starts recording.
func (b *breaker) answeredRecently(now int64) bool {
	if b.quiet.Swap(false) {
		b.lastFailure.Store(now)
		b.lastAnswer.Store(now)
		b.unhealthySince.Store(now)
	}
	return now-b.lastAnswer.Load() < int64(MinDeadline)
}

// isIgnored reports whether err is not evidence about the store: the caller's error, or an overload of a store
// that still serves others.
func (c *call) isIgnored(err error) bool {
	switch {
	case errors.Is(err, mete.ErrRequest), errors.Is(err, mete.ErrCost), errors.Is(err, store.ErrOverloaded), errors.Is(err, store.ErrTransaction), isHoldRefusal(err):
		return true
	case c.ctx.Err() == nil:
		return false
	}
	return errors.Is(err, context.Canceled) || c.shortDeadline && errors.Is(err, context.DeadlineExceeded)
}

func newUnavailable(op string, err error) error {
	return &mete.StoreError{Op: op, Store: "guard", Spent: mete.NotSpent, Err: err}
}
