// SPDX-License-Identifier: Apache-2.0

package prose

import "github.com/metehq/mete/bucket"

// Refill is how a limit refills, in a word: continuous, interval or sliding.
func Refill(l bucket.Limit) string {
	switch l.Algorithm() {
	case bucket.Stepped:
		return "interval"
	case bucket.SlidingWindow, bucket.SlidingLog:
		return "sliding"
	}
	return "continuous"
}

// Anchor is where the intervals of a limit begin, in the word of policy files; nothing
// for a limit that has none.
func Anchor(l bucket.Limit) string {
	if l.Algorithm() != bucket.Stepped {
		return ""
	}
	switch l.Anchor() {
	case bucket.AnchorKey:
		return "key"
	case bucket.AnchorFirst:
		return "first"
	}
	return "epoch"
}
