// SPDX-License-Identifier: Apache-2.0

package prose

import "github.com/metehq/mete/bucket"

// Refill returns the kind of refill: continuous, interval, sliding or release.
func Refill(l bucket.Limit) string {
	switch l.Algorithm() {
	case bucket.AlgorithmStepped:
		return "interval"
	case bucket.AlgorithmSlidingWindow, bucket.AlgorithmSlidingLog:
		return "sliding"
	case bucket.AlgorithmConcurrency:
		return "release"
	}
	return "continuous"
}

// Anchor returns the start of the intervals in the words of policy files, or "" for limits without intervals.
func Anchor(l bucket.Limit) string {
	if l.Algorithm() != bucket.AlgorithmStepped {
		return ""
	}
	switch l.Anchor() {
	case bucket.AnchorKey:
		return "key"
	case bucket.AnchorFirst:
		return "first"
	case bucket.AnchorCalendar:
		return "calendar"
	}
	return "epoch"
}
