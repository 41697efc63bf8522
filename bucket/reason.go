// SPDX-License-Identifier: Apache-2.0

package bucket

import "slices"

// The kinds of limits that denials tell apart. A [Stepped] limit that holds the tokens of
// one interval is a fixed window. Any other stepped limit is a token bucket.
const (
	kindTokenBucket = iota
	kindFixedWindow
	kindSlidingWindow
	kindSlidingLog
	kindLeakyBucket
)

var reasons = [...]string{
	kindTokenBucket:   "token_bucket_exceeded",
	kindFixedWindow:   "fixed_window_exceeded",
	kindSlidingWindow: "sliding_window_exceeded",
	kindSlidingLog:    "sliding_log_exceeded",
	kindLeakyBucket:   "leaky_bucket_exceeded",
}

// Reasons returns all reasons of [Limit.Reason].
func Reasons() []string { return slices.Clone(reasons[:]) }

// Reason returns the reason of a denial by a limit that is in no policy, such as
// "token_bucket_exceeded". A limit of a policy has the reason of the algorithm that the
// policy file names.
func (l *Limit) Reason() string {
	switch {
	case l.Queued():
		return reasons[kindLeakyBucket]
	case l.Algorithm() == SlidingLog:
		return reasons[kindSlidingLog]
	case l.Algorithm() == SlidingWindow:
		return reasons[kindSlidingWindow]
	case l.Algorithm() == Stepped && Tokens(l.n) == l.capacity:
		return reasons[kindFixedWindow]
	}
	return reasons[kindTokenBucket]
}
