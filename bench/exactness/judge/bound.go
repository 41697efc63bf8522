// SPDX-License-Identifier: Apache-2.0

package judge

import "time"

// A Shape is the kind of a documented promise.
type Shape int

const (
	// Bucket admits capacity at once and capacity per period in the long run.
	Bucket Shape = iota

	// Counter estimates the takes of a sliding period from the counts of two fixed windows. It may admit as much as a
	// Bucket: a full capacity at the end of each window. And it may deny because of takes two periods ago.
	Counter

	// RequestCounter is a Counter of all takes, also of denied ones.
	RequestCounter

	// Capped is a Bucket that admits no more than capacity in each of its fixed windows.
	Capped

	// FirstHit counts in fixed windows. A window starts with a take and lasts for a period at least.
	FirstHit

	// Epoch counts in fixed windows that start at multiples of the period since 1970.
	Epoch

	// Log admits capacity in any window of one period.
	Log
)

// A Limit admits Capacity tokens per Period.
type Limit struct {
	Capacity int
	Period   time.Duration
}

// Resolution is the assumed precision of every limiter's clock. Windows count as longer by it, and tokens may refill
// later by it. nginx, for one, reads a clock with ticks of 4 ms.
const Resolution = 10 * time.Millisecond

// ceiling returns the largest number of tokens that the promise allows in any window of length t. If first is set, no
// take precedes the window.
func (l Limit) ceiling(s Shape, t time.Duration, first bool) int {
	t += Resolution
	periods := int(t / l.Period)
	switch {
	case s <= Capped:
		return l.Capacity + int(float64(l.Capacity)*(float64(t)/float64(l.Period)))
	case s == Log, s == FirstHit && first:
		return l.Capacity * (periods + 1)
	default:
		return l.Capacity * (periods + 2)
	}
}

// mayDeny reports whether a limiter that spent the tokens in the last t may deny a take of n more. It considers only
// this window.
func (l Limit) mayDeny(s Shape, t time.Duration, spent, n int) bool {
	t = max(t-Resolution, 0)
	inBucket := float64(spent+n) <= float64(l.Capacity)*(1+float64(t)/float64(l.Period))
	switch s {
	case Bucket:
		return !inBucket
	case Capped:
		return !inBucket || t <= l.Period && spent+n > l.Capacity
	case Counter, RequestCounter:
		return t <= 2*l.Period && spent+n > l.Capacity
	default:
		return t <= l.Period && spent+n > l.Capacity
	}
}
