// SPDX-License-Identifier: Apache-2.0

package dropin

import (
	"fmt"
	"strconv"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/metehq/mete/bucket"
)

const (
	// maxCount is the number of hits at which a counter stops. It is above every limit, so a full counter is over
	// every limit until its window ends.
	maxCount = 1 << 42

	// maxHits bounds the hits that one descriptor adds. It is above every limit too.
	maxHits = maxCount / 2

	// MaxWindow is the longest window: the 35 years of a bucket's interval, in seconds.
	MaxWindow = (1<<50 - 1) / 1_000_000
)

// A window is a fixed window of time. Windows begin at multiples of their length since the Unix epoch.
type window struct {
	seconds int64
	suffix  string // for keys, such as "m" or "s30"

	// The counter is a bucket that is full at the start of each window, and whose missing tokens are the hits. Its
	// capacity is the same for all limits. A counter therefore keeps its hits when a limit changes, and clients that
	// choose limits create no new ones in the store.
	counter bucket.Limit
}

// unitSeconds are the lengths of the units: a month has 30 days, and a year 365.
var unitSeconds = map[ratelimitv3.RateLimitResponse_RateLimit_Unit]int64{
	ratelimitv3.RateLimitResponse_RateLimit_SECOND: 1,
	ratelimitv3.RateLimitResponse_RateLimit_MINUTE: 60,
	ratelimitv3.RateLimitResponse_RateLimit_HOUR:   60 * 60,
	ratelimitv3.RateLimitResponse_RateLimit_DAY:    24 * 60 * 60,
	ratelimitv3.RateLimitResponse_RateLimit_WEEK:   7 * 24 * 60 * 60,
	ratelimitv3.RateLimitResponse_RateLimit_MONTH:  30 * 24 * 60 * 60,
	ratelimitv3.RateLimitResponse_RateLimit_YEAR:   365 * 24 * 60 * 60,
}

// unitWindows are the windows of one unit.
var unitWindows = func() map[ratelimitv3.RateLimitResponse_RateLimit_Unit]window {
	all := map[ratelimitv3.RateLimitResponse_RateLimit_Unit]window{}
	for unit := range unitSeconds {
		w, err := compileWindow(unit, 1)
		if err != nil {
			panic(err) // a constant is wrong
		}
		all[unit] = w
	}
	return all
}()

// newWindow returns the window of some units.
func newWindow(unit ratelimitv3.RateLimitResponse_RateLimit_Unit, units uint32) (window, error) {
	if w, ok := unitWindows[unit]; ok && units == 1 {
		return w, nil
	}
	return compileWindow(unit, units)
}

func compileWindow(unit ratelimitv3.RateLimitResponse_RateLimit_Unit, units uint32) (window, error) {
	seconds := unitSeconds[unit]
	switch {
	case seconds == 0:
		return window{}, fmt.Errorf("unit %v is unknown: use %s", unit, unitWords)
	case units == 0:
		return window{}, fmt.Errorf("unit_multiplier is 0: use 1 or more, or leave it out")
	case int64(units) > MaxWindow/seconds:
		return window{}, fmt.Errorf("a window of %d units of %d seconds: must be at most %d seconds", units, seconds, MaxWindow)
	}
	w := window{seconds: seconds * int64(units), suffix: strconv.FormatInt(seconds*int64(units), 10)}
	var err error
	none := bucket.Tokens(0)
	w.counter, _, err = bucket.Spec{
		Algorithm: bucket.AlgorithmStepped, Capacity: maxCount * bucket.Token, MaxReserved: &none,
		Rate: bucket.Rate{Tokens: maxCount * bucket.Token, Per: time.Duration(w.seconds) * time.Second},
	}.Compile()
	return w, err
}

// resetAfter returns the seconds from an instant until the window ends, rounded up. It is never 0.
func (w *window) resetAfter(now bucket.Instant) int64 {
	return w.seconds - int64(now)/1_000_000%w.seconds
}

// newBucket returns the token bucket of a limit: it holds the requests of one unit, and refills as many per unit. A
// limit of 0 requests admits nothing.
func newBucket(requests uint32, w window) (bucket.Limit, error) {
	per := time.Duration(w.seconds) * time.Second
	capacity := bucket.Tokens(requests) * bucket.Token
	if requests == 0 {
		capacity = 1 // a thousandth: less than any hit
	}
	none := bucket.Tokens(0)
	spec := bucket.Spec{Capacity: capacity, MaxReserved: &none, Rate: bucket.Rate{Tokens: capacity, Per: per}}
	if l, inexact, err := spec.Compile(); err == nil && inexact == nil {
		return l, nil
	}
	// Large limits with a long unit need too many bits to refill all the time. They refill at least 1,000 times per
	// unit instead.
	steps := divisor(int64(capacity), per.Microseconds())
	spec.Algorithm = bucket.AlgorithmStepped
	spec.Rate = bucket.Rate{Tokens: capacity / bucket.Tokens(steps), Per: per / time.Duration(steps)}
	l, _, err := spec.Compile()
	return l, err
}

// divisor returns the greatest common divisor.
func divisor(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
