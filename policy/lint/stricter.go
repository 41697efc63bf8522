// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"math"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policy/internal/inspect"
)

// A limit is never reached if another limit on the same requests never admits more. [maxAdmitted] bounds the tokens
// that a limit admits in any time t. Each algorithm admits everything below some bound. Both bounds are
// conservative: they may miss a redundant limit, but never report a needed one.

// slack is the tolerance for floating-point errors.
const slack = 1 + 1e-12

// maxAdmitted bounds the tokens that l admits in any t seconds.
func maxAdmitted(l bucket.Limit, t float64) float64 {
	n, p := l.Refill()
	capacity, amount, per := float64(l.Capacity()), float64(n), float64(p)/1e6
	switch l.Algorithm() {
	case bucket.AlgorithmStepped: // at most one more step than fits into t
		return capacity + amount*(math.Floor(t/per)+1)
	case bucket.AlgorithmSlidingLog:
		return amount * max(math.Ceil(t/per), 1)
	case bucket.AlgorithmSlidingWindow: // the count never exceeds this in any window that it keeps
		return amount * (math.Floor(t/per) + 2)
	}
	if l.Queued() {
		capacity += float64(l.MaxReserved())
	}
	return capacity + amount*t/per
}

// maxEstimate bounds the estimate of a sliding window that counts the requests of l. The estimate is a weighted sum
// of l's requests in at most two windows, so it is at most the requests in two windows. If a linear function bounds
// l's requests, its value at one window is a bound, too. The window is counted in parts of 1/4096.
func maxEstimate(l bucket.Limit, window float64) float64 {
	return min(maxAdmitted(l, 2*window), maxAdmitted(l, 0)+meanRate(l)*window*(1+1.0/4096))
}

// meanRate returns the tokens that l admits per second in the long run.
func meanRate(l bucket.Limit) float64 {
	n, p := l.Refill()
	return float64(n) / float64(p) * 1e6
}

// stricter reports whether y always admits requests that x admits, if both are charged for the same requests. A limit
// that is charged by responses is not comparable.
func stricter(x, y *policy.Limit) bool {
	if x.AwaitsResponse() || y.AwaitsResponse() {
		return false
	}
	if x.HoldsSlot() || y.HoldsSlot() { // a slot is free when its request ends, and no rate bounds that
		n, _ := x.Bucket.Refill()
		m, _ := y.Bucket.Refill()
		return x.HoldsSlot() && y.HoldsSlot() && n <= m
	}
	if x.Costs() != y.Costs() || y.Shards > 1 || len(y.Stages) > 0 {
		return false
	}
	a, b := x.Bucket, y.Bucket
	if a.Anchor() == bucket.AnchorCalendar || b.Anchor() == bucket.AnchorCalendar {
		return stricterCalendar(a, b)
	}
	n, p := b.Refill()
	window, capacity := float64(p)/1e6, float64(b.Capacity())*slack
	switch b.Algorithm() {
	case bucket.AlgorithmStepped:
		if sameSteps(a, b) {
			return stricterSteps(a, b)
		}
		return maxAdmitted(a, window) <= capacity && (b.Capacity() == n || meanRate(a) <= meanRate(b)*slack)
	case bucket.AlgorithmSlidingLog:
		return maxAdmitted(a, window) <= float64(n)*slack
	case bucket.AlgorithmSlidingWindow:
		if a.Algorithm() == bucket.AlgorithmSlidingWindow {
			m, q := a.Refill()
			return q == p && m <= n
		}
		return maxEstimate(a, window) <= float64(n)*slack
	}
	// The tokens that x admits in any time, however short.
	return maxAdmitted(a, 0) <= capacity && meanRate(a) <= meanRate(b)*slack
}

// stricterCalendar is like stricter, if one of the limits has a calendar. It compares only limits with the same one, because
// windows have different lengths.
func stricterCalendar(a, b bucket.Limit) bool {
	this, _ := a.Calendar()
	that, _ := b.Calendar()
	n, _ := a.Refill()
	m, _ := b.Refill()
	return this == that && n <= m && a.Capacity() <= b.Capacity()
}

// sameSteps reports whether each interval of b consists of whole intervals of a.
func sameSteps(a, b bucket.Limit) bool {
	_, p := b.Refill()
	_, q := a.Refill()
	return a.Algorithm() == bucket.AlgorithmStepped && a.Anchor() == b.Anchor() && p%q == 0 &&
		(a.Anchor() == bucket.AnchorEpoch && (b.Start()-a.Start())%(time.Duration(q)*time.Microsecond) == 0 || p == q && a.Anchor() == bucket.AnchorKey)
}

// stricterSteps is like stricter, for limits with the same steps.
func stricterSteps(a, b bucket.Limit) bool {
	n, _ := b.Refill()
	return maxPerInterval(a, b) <= float64(b.Capacity())*slack && (b.Capacity() == n || meanRate(a) <= meanRate(b)*slack)
}

// maxPerInterval returns the tokens that a admits in one interval of b, which consists of whole intervals of a.
func maxPerInterval(a, b bucket.Limit) float64 {
	_, p := b.Refill()
	m, q := a.Refill()
	return float64(a.Capacity()) + float64(m)*float64(p/q-1)
}

// allowance describes what x admits, in the units of y.
func allowance(x, y *policy.Limit) string {
	a, b := x.Bucket, y.Bucket
	n, p := a.Refill()
	_, q := b.Refill()
	window := time.Duration(q) * time.Microsecond
	switch {
	case b.Algorithm() == bucket.AlgorithmConcurrency:
		return fmt.Sprintf("%v at a time", n)
	case b.Anchor() == bucket.AnchorCalendar:
		c, _ := b.Calendar()
		return fmt.Sprintf("%v per %s", n, c.Window)
	case b.Algorithm() == bucket.AlgorithmStepped && sameSteps(a, b):
		return fmt.Sprintf("%v in %s", bucket.Tokens(maxPerInterval(a, b)), inspect.FormatDuration(window))
	case b.Algorithm() != bucket.AlgorithmContinuous:
		return fmt.Sprintf("%v in %s", bucket.Tokens(maxAdmitted(a, window.Seconds())), inspect.FormatDuration(window))
	case a.Algorithm() != bucket.AlgorithmContinuous:
		return fmt.Sprintf("%v in %s", n, inspect.FormatDuration(time.Duration(p)*time.Microsecond))
	}
	return fmt.Sprintf("%v at once and %s after that", bucket.Tokens(maxAdmitted(a, 0)), pace(n, p))
}

// pace formats n tokens every p microseconds in a readable unit: "10 per second".
func pace(n bucket.Tokens, p int64) string {
	for _, unit := range []struct {
		name string
		per  time.Duration
	}{{"second", time.Second}, {"minute", time.Minute}, {"hour", time.Hour}, {"day", 24 * time.Hour}} {
		if amount := float64(n) * float64(unit.per.Microseconds()) / float64(p); amount >= float64(bucket.Token) && amount == math.Trunc(amount) {
			return fmt.Sprintf("%v per %s", bucket.Tokens(amount), unit.name)
		}
	}
	return bucket.Rate{Tokens: n, Per: time.Duration(p) * time.Microsecond}.String()
}
