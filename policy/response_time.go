// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"sync/atomic"
	"time"
)

const (
	// firstAwait is the expected time until a settlement before any was seen.
	firstAwait = time.Second

	// firstModelAwait replaces it for language models: their answers stream for long.
	firstModelAwait = 2 * time.Minute

	// minAwait and maxAwait bound the expected time.
	minAwait = 10 * time.Millisecond
	maxAwait = 10 * time.Minute

	// awaitMeans is the expected time in means of the recent times: most settlements come earlier.
	awaitMeans = 4

	// meanWeight is the reciprocal of a new time's weight in the mean.
	meanWeight = 8
)

// A responseTime is the mean time until the responses to the requests of one limit. Concurrent calls may lose times.
type responseTime struct{ mean atomic.Int64 } // in nanoseconds; 0 until a time was seen

// ExpectedResponse returns the time within which most responses come, for [store.Charge.Await]. It adapts to the times of
// [Limit.ObserveResponse], and is between 10 ms and 10 min.
func (l *Limit) ExpectedResponse() time.Duration {
	first := firstAwait
	if l.cost.ai != nil {
		first = firstModelAwait
	}
	if l.response == nil {
		return first
	}
	mean := time.Duration(l.response.mean.Load())
	if mean == 0 {
		return first
	}
	return min(max(awaitMeans*mean, minAwait), maxAwait)
}

// ObserveResponse records the time from an admission under l until its response determined the final charge. It is safe for
// concurrent use.
func (l *Limit) ObserveResponse(after time.Duration) {
	if l.response == nil {
		return
	}
	after = min(max(after, time.Microsecond), maxAwait)
	if mean := time.Duration(l.response.mean.Load()); mean != 0 {
		after = max(mean+(after-mean)/meanWeight, time.Microsecond)
	}
	l.response.mean.Store(int64(after))
}
