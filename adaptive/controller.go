// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"context"
	"errors"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/metehq/mete/bucket"
)

// unit is 1, in the whole numbers that factors are kept in.
const unit = 1 << 20

// minObservations are needed for an interval to mean anything.
const minObservations = 10

// A Controller keeps the factor. It is safe for concurrent use, starts no
// goroutine and needs no Close.
type Controller struct {
	config settings
	factor atomic.Int64 // of unit

	mu     sync.Mutex     // guards the fields below, and changes of factor
	window window         // of the interval that goes on
	now    bucket.Instant // the latest that was seen
	resume bucket.Instant // nothing is counted before
	usual  int64          // the long-term mean latency, in 256ths of a microsecond
}

// settings are those of a Config, in whole numbers.
type settings struct {
	law                            Law
	floor, failures, backoff, step int64 // of unit
	tolerance                      int64 // of toleranceUnit
	target                         int64 // in microseconds; 0 is none
	interval                       bucket.Instant
	now                            func() bucket.Instant
}

// A window is what was observed in an interval.
type window struct {
	start         bucket.Instant
	count, failed int64
	microseconds  int64
}

// New returns a controller whose factor is 1. The error names everything that is
// wrong with c.
func New(c Config) (*Controller, error) {
	c = c.withDefaults()
	if err := c.check(); err != nil {
		return nil, err
	}
	whole := func(f float64) int64 { return int64(f * unit) }
	a := &Controller{config: settings{
		law:       c.Law,
		floor:     int64(math.Ceil(c.Floor * unit)), // never below what was asked for
		failures:  whole(c.Failures),
		backoff:   whole(c.Backoff),
		step:      whole(c.Step),
		tolerance: int64(c.Tolerance * toleranceUnit),
		target:    c.Target.Microseconds(),
		interval:  bucket.Instant(c.Interval.Microseconds()),
		now:       c.Now,
	}}
	a.factor.Store(unit)
	a.now = c.Now()
	a.window.start = a.now
	return a, nil
}

// Factor returns the part of every limit that holds now, between the floor and
// 1: for people and graphs.
func (c *Controller) Factor() float64 { return float64(c.factor.Load()) / unit }

// Scale returns cost divided by the factor, rounded up, and at most
// [bucket.MaxTokens]. It takes no lock. Costs of 0 or less stay as they are.
func (c *Controller) Scale(cost bucket.Tokens) bucket.Tokens {
	factor := uint64(c.factor.Load())
	if factor == unit || cost <= 0 {
		return cost
	}
	hi, lo := bits.Mul64(uint64(cost), unit)
	if hi >= factor {
		return bucket.MaxTokens
	}
	scaled, rest := bits.Div64(hi, lo, factor)
	if rest > 0 {
		scaled++
	}
	return bucket.Tokens(min(scaled, uint64(bucket.MaxTokens)))
}

// A Call is a request that has begun. Its zero value observes nothing.
type Call struct {
	controller *Controller
	at         bucket.Instant
}

// Begin notes that a request that was admitted begins now.
func (c *Controller) Begin() Call { return Call{c, c.config.now()} }

// Done observes that the call has ended. See [Controller.Observe] about err.
func (c Call) Done(err error) {
	if c.controller != nil {
		now := c.controller.config.now()
		c.controller.observe(now, int64(now-c.at), err)
	}
}

// Observe tells of a request that was admitted and ends now: how long it took and
// whether it failed. An err that is [context.Canceled] says that nobody waited for
// the end, and is not counted at all. Latencies are taken as between 0 and an
// hour.
//
// Requests that were refused tell nothing of the protected server: they are not
// observed.
func (c *Controller) Observe(latency time.Duration, err error) {
	c.observe(c.config.now(), latency.Microseconds(), err)
}

func (c *Controller) observe(now bucket.Instant, latency int64, err error) {
	if err != nil && errors.Is(err, context.Canceled) {
		return
	}
	latency = min(max(latency, 0), maxLatency.Microseconds())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = max(c.now, now)
	// What ends soon after the factor was lowered has begun before, or has waited
	// behind what did.
	if c.now < c.resume {
		c.window = window{start: c.now}
		return
	}
	if w := &c.window; c.now-w.start >= c.config.interval && w.count >= minObservations {
		c.conclude(w)
		*w = window{start: c.now}
	}
	c.window.add(latency, err != nil || c.config.target > 0 && latency > c.config.target)
}

func (w *window) add(latency int64, failed bool) {
	w.count++
	w.microseconds += latency
	if failed {
		w.failed++
	}
}
