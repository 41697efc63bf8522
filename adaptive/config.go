// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"errors"
	"fmt"
	"time"

	"github.com/metehq/mete/bucket"
)

// A Law is how a [Controller] moves its factor.
type Law uint8

const (
	// AIMD grows the factor by a step at a time, and cuts it by a ratio when too
	// many requests fail or are slower than a target.
	AIMD Law = iota

	// Gradient lowers the factor as far as latency has grown, and cuts it as AIMD
	// does when too many requests fail.
	Gradient
)

// String returns the name of l, such as "gradient".
func (l Law) String() string {
	switch l {
	case AIMD:
		return "aimd"
	case Gradient:
		return "gradient"
	}
	return fmt.Sprintf("law %d", uint8(l))
}

// Config are the settings of a [Controller]. The zero Config is AIMD that looks
// at failures only.
type Config struct {
	Law Law

	// Floor is the least the factor becomes, above 0 and at most 1. 0 is 0.1.
	Floor float64

	// Target is the latency above which [AIMD] counts a request as failed. 0 is
	// none: then only errors count. Gradient takes none.
	Target time.Duration

	// Tolerance is how many times its long-term mean the latency of an interval
	// may be before [Gradient] lowers the factor: from 1 to 100. 0 is 1.5. AIMD
	// takes none.
	Tolerance float64

	// Failures is the share of requests that may fail in an interval without
	// consequences, from 0 and below 1. 0 is 0.05.
	Failures float64

	// Backoff is what the factor is multiplied by after an interval with more
	// failures, above 0 and below 1. 0 is 0.9.
	Backoff float64

	// Step is what the factor grows by after an interval without, above 0 and at
	// most 1. 0 is 0.01.
	Step float64

	// Interval is how long the controller watches before it moves the factor, from
	// a millisecond to an hour; longer, where there are fewer than ten
	// observations in it. It should be longer than a request may take. 0 is a
	// second.
	Interval time.Duration

	// Now is the clock. Nil is the process clock. It must be safe for concurrent
	// use; where it steps back, time stands still.
	Now func() bucket.Instant
}

// ErrConfig is wrapped by the errors of [New]. It joins one for each mistake.
var ErrConfig = errors.New("adaptive: invalid config")

// withDefaults fills in what c leaves out.
func (c Config) withDefaults() Config {
	set := func(field *float64, value float64) {
		if *field == 0 {
			*field = value
		}
	}
	set(&c.Floor, 0.1)
	set(&c.Failures, 0.05)
	set(&c.Backoff, 0.9)
	set(&c.Step, 0.01)
	if c.Law == Gradient {
		set(&c.Tolerance, 1.5)
	}
	if c.Interval == 0 {
		c.Interval = time.Second
	}
	if c.Now == nil {
		began := time.Now()
		c.Now = func() bucket.Instant { return bucket.At(began).Add(time.Since(began)) } // never steps back
	}
	return c
}

// check reports every mistake in c, which has its defaults. Comparisons are such
// that a NaN is one.
func (c Config) check() error {
	var mistakes []error
	want := func(ok bool, format string, args ...any) {
		if !ok {
			mistakes = append(mistakes, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...))
		}
	}
	want(c.Law <= Gradient, "%v is unknown", c.Law)
	want(c.Floor >= least && c.Floor <= 1, "floor %v: must be between %v and 1", c.Floor, least)
	want(c.Failures >= 0 && c.Failures < 1, "failures %v: must be at least 0 and below 1", c.Failures)
	want(c.Backoff >= least && c.Backoff <= 1-least, "backoff %v: must be between %v and %v", c.Backoff, least, 1-least)
	want(c.Step >= least && c.Step <= 1, "step %v: must be between %v and 1", c.Step, least)
	want(c.Interval >= time.Millisecond && c.Interval <= time.Hour, "interval %v: must be between 1ms and 1h", c.Interval)
	if c.Law == Gradient {
		want(c.Target == 0, "target %v: a gradient has none", c.Target)
		want(c.Tolerance >= 1 && c.Tolerance <= 100, "tolerance %v: must be between 1 and 100", c.Tolerance)
	} else {
		want(c.Target >= 0 && c.Target <= maxLatency, "target %v: must be between 0 and %v", c.Target, maxLatency)
		want(c.Tolerance == 0, "tolerance %v: only a gradient has one", c.Tolerance)
	}
	return errors.Join(mistakes...)
}

const (
	// least is the finest of what a Config says in parts of 1: what is less would
	// be next to nothing in whole numbers.
	least = 0.0001

	// maxLatency is the longest latency there is. Longer ones count as this.
	maxLatency = time.Hour
)
