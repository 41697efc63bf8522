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

const unit = 1 << 20

// minObservations is the smallest number of observations in a meaningful interval.
const minObservations = 10

// A Controller adapts a factor to the health of a server. It is safe for concurrent use, starts no goroutine
// and needs no Close.
type Controller struct {
	config settings
	factor atomic.Int64 // in 1/unit

	mu     sync.Mutex     // guards the fields below and changes of factor.
	window window         // of the current interval
	now    bucket.Instant // the latest instant seen
	resume bucket.Instant // observations before it are ignored
	usual  int64          // the long-term mean latency, in 256ths of a microsecond
}

type settings struct {
	law                            Law
	floor, failures, backoff, step int64 // in 1/unit
	tolerance                      int64 // in 1/toleranceUnit
	target                         int64 // in microseconds; 0 for none
	interval                       bucket.Instant
	now                            func() bucket.Instant
}

// A window sums the observations of an interval.
type window struct {
	start         bucket.Instant
	count, failed int64
	microseconds  int64
}

// New returns a controller with the factor 1. The error lists all invalid settings.
func New(c Config) (*Controller, error) {
	c = c.withDefaults()
	if err := c.check(); err != nil {
		return nil, err
	}
	whole := func(f float64) int64 { return int64(f * unit) }
	a := &Controller{config: settings{
		law:       c.Law,
		floor:     int64(math.Ceil(c.Floor * unit)), // rounded up: never below the setting
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

// Factor returns the current factor, between the floor and 1.
func (c *Controller) Factor() float64 { return float64(c.factor.Load()) / unit }

// Scale returns cost divided by the factor, rounded up and at most [bucket.MaxTokens]. It takes no lock. It
// returns costs of 0 or less unchanged.
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

// A Call is a request in progress. The zero value observes nothing.
type Call struct {
	controller *Controller
	at         bucket.Instant
}

// Begin starts the observation of an admitted request.
func (c *Controller) Begin() Call { return Call{c, c.config.now()} }

// Done ends the observation. See [Controller.Observe] about err.
func (c Call) Done(err error) {
	if c.controller != nil {
		now := c.controller.config.now()
		c.controller.observe(now, int64(now-c.at), err)
	}
}

// Observe records the duration and the result of an admitted request that ends now. It ignores requests with an err
// of [context.Canceled]. Latencies are clamped to the range from 0 to an hour. Do not observe denied requests, because the
// protected server never sees them.
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
	// Requests that end soon after a cut started before it, or waited behind such requests.
	if c.now < c.resume {
		c.window = window{start: c.now}
		return
	}
	if w := &c.window; c.now-w.start >= c.config.interval && w.count >= minObservations {
		c.updateFactor(w)
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
