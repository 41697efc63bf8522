// SPDX-License-Identifier: Apache-2.0

package bucket

import "slices"

// The kinds of limits with their own reason of denial. An [AlgorithmStepped] limit with the capacity of one interval is a
// fixed window. Any other stepped limit is a token bucket.
const (
	kindTokenBucket = iota
	kindFixedWindow
	kindSlidingWindow
	kindSlidingLog
	kindLeakyBucket
	kindConcurrency
)

var reasons = [...]string{
	kindTokenBucket:   "token_bucket_exceeded",
	kindFixedWindow:   "fixed_window_exceeded",
	kindSlidingWindow: "sliding_window_exceeded",
	kindSlidingLog:    "sliding_log_exceeded",
	kindLeakyBucket:   "leaky_bucket_exceeded",
	kindConcurrency:   "concurrency_exceeded",
}

func Reasons() []string { return slices.Clone(reasons[:]) }

// Reason returns the reason of a denial by a limit outside of a policy, such as "token_bucket_exceeded". In a
// policy, the reason follows the algorithm in the policy file.
func (l *Limit) Reason() string {
	switch {
	case l.Queued():
		return reasons[kindLeakyBucket]
	case l.Algorithm() == AlgorithmConcurrency:
		return reasons[kindConcurrency]
	case l.Algorithm() == AlgorithmSlidingLog:
		return reasons[kindSlidingLog]
	case l.Algorithm() == AlgorithmSlidingWindow:
		return reasons[kindSlidingWindow]
	case l.Algorithm() == AlgorithmStepped && Tokens(l.n) == l.capacity:
		return reasons[kindFixedWindow]
	}
	return reasons[kindTokenBucket]
}
