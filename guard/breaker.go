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

// A State is what the breaker does with calls.
type State string

const (
	Closed   State = "closed"    // lets them through
	HalfOpen State = "half-open" // lets a few through, to see
	Open     State = "open"      // lets them fail at once
)

// states are ours by gobreaker's.
var states = [...]State{gobreaker.StateClosed: Closed, gobreaker.StateHalfOpen: HalfOpen, gobreaker.StateOpen: Open}

var (
	errOpen     = fmt.Errorf("%w: circuit breaker is open", store.ErrUnavailable)
	errHalfOpen = fmt.Errorf("%w: circuit breaker is half-open, and other calls try the store", store.ErrUnavailable)
	errPanic    = errors.New("guard: the store panicked")

	// errNoSign stands for errors that say nothing about the store.
	errNoSign = errors.New("guard: no sign of illness")
)

// windowParts is in how many steps the Window moves on.
const windowParts = 10

// A breaker is gobreaker's, told which errors count. That one costs two locks and
// an allocation for each call, so while all is well it is not told: from the
// first failure on, until there has been none for a Window.
type breaker struct {
	gate *gobreaker.TwoStepCircuitBreaker[struct{}]

	calm             atomic.Bool   // nothing has failed lately
	failed           atomic.Int64  // when something did, in nanoseconds since begin
	answered         atomic.Int64  // when a call was answered; not kept while calm
	since            atomic.Int64  // when the first of the failures did that nobody's answer has come between; 0: none
	ill              atomic.Int64  // when the calm ended
	state            atomic.Uint32 // gobreaker's, for who must not lock it
	opened, rejected atomic.Uint64

	begin time.Time
}

func newBreaker(c Config) *breaker {
	b := &breaker{begin: time.Now()}
	b.calm.Store(true)
	b.gate = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		MaxRequests:  uint32(c.Probes),
		Interval:     Window,
		BucketPeriod: Window / windowParts,
		Timeout:      c.OpenFor,
		ReadyToTrip: func(n gobreaker.Counts) bool {
			ended, now := n.TotalSuccesses+n.TotalFailures, int64(time.Since(b.begin))
			row := n.ConsecutiveFailures >= uint32(c.Failures) && now-b.since.Load() >= int64(c.Spell)
			half := ended >= MinCalls && 2*n.TotalFailures >= ended && now-b.ill.Load() >= int64(c.Spell)
			return row || half
		},
		IsExcluded: func(err error) bool { return err == errNoSign },
		OnStateChange: func(_ string, from, to gobreaker.State) { // the breaker is locked
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

func (b *breaker) now() State { return states[b.state.Load()] }

// A call is one that the breaker has let through.
type call struct {
	breaker *breaker
	ctx     context.Context
	done    func(error) // nil where gobreaker has not been told of it
	opened  uint64      // how often the breaker had opened then
	hasty   bool        // the caller's deadline is nearer than Patience
	brief   bool        // and so is the end of Mode.Within
}

// enter lets a call through that takes no longer than within, if that is above 0,
// or says why not.
func (b *breaker) enter(ctx context.Context, op string, within time.Duration) (call, error) {
	c := call{breaker: b, ctx: ctx, brief: within > 0 && within < Patience}
	if deadline, ok := ctx.Deadline(); ok {
		c.hasty = time.Until(deadline) < Patience
	}
	if c.opened = b.opened.Load(); b.calm.Load() {
		return c, nil
	}
	var err error
	if c.done, err = b.gate.Allow(); err != nil {
		b.rejected.Add(1)
		if errors.Is(err, gobreaker.ErrTooManyRequests) {
			return c, unavailable(op, errHalfOpen)
		}
		return c, unavailable(op, errOpen)
	}
	return c, nil
}

// leave tells the breaker what came of the call.
func (c *call) leave(err *error) {
	if *err == nil && c.done == nil {
		return
	}
	c.end(*err)
}

func (c *call) end(err error) {
	b := c.breaker
	now := int64(time.Since(b.begin))
	switch {
	case err == nil:
		b.answered.Store(now)
		b.since.Store(0)
	case c.saysNothing(err), c.brief && errors.Is(err, context.DeadlineExceeded) && b.answers(now):
		err = errNoSign
	}
	if err != nil && err != errNoSign {
		b.failed.Store(now)
		b.since.CompareAndSwap(0, now)
		if b.calm.Swap(false) {
			b.ill.Store(now)
		}
		if c.done == nil && c.opened == b.opened.Load() { // else it is of before, and no probe
			c.done, _ = b.gate.Allow()
		}
	}
	if c.done != nil {
		c.done(err)
	}
	if err == nil && b.now() == Closed && now-b.failed.Load() > int64(Window) {
		b.calm.Store(true)
	}
}

// answers reports whether the store has answered anybody within Patience. While all
// was well nobody kept that in mind: then it is believed, and is kept from now on.
func (b *breaker) answers(now int64) bool {
	if b.calm.Swap(false) {
		b.failed.Store(now)
		b.answered.Store(now)
		b.ill.Store(now)
	}
	return now-b.answered.Load() < int64(Patience)
}

// saysNothing reports whether err is the callers' doing: of one, or of too many at
// a time, of whom the store still serves some.
func (c *call) saysNothing(err error) bool {
	switch {
	case errors.Is(err, mete.ErrRequest), errors.Is(err, mete.ErrCost), errors.Is(err, store.ErrOverloaded), errors.Is(err, store.ErrTransaction):
		return true
	case c.ctx.Err() == nil:
		return false
	}
	return errors.Is(err, context.Canceled) || c.hasty && errors.Is(err, context.DeadlineExceeded)
}

func unavailable(op string, err error) error {
	return &mete.StoreError{Op: op, Store: "guard", Spent: mete.NotSpent, Err: err}
}
