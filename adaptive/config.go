// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"errors"
	"fmt"
	"time"

	"github.com/metehq/mete/bucket"
)

// A Law selects how a [Controller] changes its factor.
type Law uint8

const (
	// LawAIMD increases the factor additively, and decreases it multiplicatively if too many requests fail or
	// exceed a target latency.
	LawAIMD Law = iota

	// LawGradient lowers the factor in proportion to the growth of latency. It reacts to failures like LawAIMD.
	LawGradient
)

func (l Law) String() string {
	switch l {
	case LawAIMD:
		return "aimd"
	case LawGradient:
		return "gradient"
	}
	return fmt.Sprintf("law %d", uint8(l))
}

// Config holds the settings of a [Controller]. The zero Config is AIMD based on failures only.
type Config struct {
	Law Law

	// Floor is the smallest factor, above 0 and at most 1. 0 means 0.1.
	Floor float64

	// Target is the latency above which [LawAIMD] counts a request as failed. 0 counts only errors. It must be 0
	// for [LawGradient].
	Target time.Duration

	// Tolerance is the ratio of an interval's latency to the long-term mean above which [LawGradient] lowers the
	// factor: from 1 to 100. 0 means 1.5. It must be 0 for LawAIMD.
	Tolerance float64

	// Failures is the share of requests that may fail in an interval without lowering the factor, at least 0 and
	// below 1. 0 means 0.05.
	Failures float64

	// Backoff is the multiplier of the factor after an interval with too many failures, above 0 and below 1. 0
	// means 0.9.
	Backoff float64

	// Step is added to the factor after an interval without too many failures, above 0 and at most 1. 0 means 0.01.
	Step float64

	// Interval is the time between changes of the factor, from a millisecond to an hour. It is extended until
	// there are ten observations. It should exceed the duration of a request. 0 means one second.
	Interval time.Duration

	// Now is the clock. Nil means the process clock. It must be safe for concurrent use. If it steps back, time
	// stands still.
	Now func() bucket.Instant
}

// ErrConfig is wrapped by the errors of [New], which joins one error per invalid setting.
var ErrConfig = errors.New("adaptive: invalid config")

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
	if c.Law == LawGradient {
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

// check reports every invalid setting of c. Its comparisons reject NaN.
func (c Config) check() error {
	var mistakes []error
	want := func(ok bool, format string, args ...any) {
		if !ok {
			mistakes = append(mistakes, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...))
		}
	}
	want(c.Law <= LawGradient, "%v is unknown", c.Law)
	want(c.Floor >= minFraction && c.Floor <= 1, "floor %v: must be between %v and 1", c.Floor, minFraction)
	want(c.Failures >= 0 && c.Failures < 1, "failures %v: must be at least 0 and below 1", c.Failures)
	want(c.Backoff >= minFraction && c.Backoff <= 1-minFraction, "backoff %v: must be between %v and %v", c.Backoff, minFraction, 1-minFraction)
	want(c.Step >= minFraction && c.Step <= 1, "step %v: must be between %v and 1", c.Step, minFraction)
	want(c.Interval >= time.Millisecond && c.Interval <= time.Hour, "interval %v: must be between 1ms and 1h", c.Interval)
	if c.Law == LawGradient {
		want(c.Target == 0, "target %v: must be 0 with Gradient", c.Target)
		want(c.Tolerance >= 1 && c.Tolerance <= 100, "tolerance %v: must be between 1 and 100", c.Tolerance)
	} else {
		want(c.Target >= 0 && c.Target <= maxLatency, "target %v: must be between 0 and %v", c.Target, maxLatency)
		want(c.Tolerance == 0, "tolerance %v: must be 0 with AIMD", c.Tolerance)
	}
	return errors.Join(mistakes...)
}

const (
	// minFraction is the smallest distance of a fraction from 0 or 1, because factors are whole numbers internally.
	minFraction = 0.0001

	// maxLatency is the largest latency. Longer ones count as maxLatency.
	maxLatency = time.Hour
)
