// SPDX-License-Identifier: Apache-2.0

package bucket

import "fmt"

// An Algorithm defines how spent tokens return to a bucket.
type Algorithm uint8

const (
	// AlgorithmContinuous is the token bucket: it refills all the time.
	AlgorithmContinuous Algorithm = iota

	// AlgorithmStepped is a token bucket that adds [Rate.Tokens] at the start of every interval of [Rate.Per]. With the
	// capacity of one interval it is a fixed window, and with a higher one a window with rollover.
	AlgorithmStepped

	// AlgorithmSlidingWindow is the sliding window counter: it counts the current window of [Rate.Per] plus a share of
	// the previous window. Its memory is constant, and it admits less than twice [Rate.Tokens] in any window.
	AlgorithmSlidingWindow

	// AlgorithmSlidingLog records every cost with its instant, and admits at most [Rate.Tokens] in any window of
	// [Rate.Per]. It needs memory for each cost in the window: see [MaxLogTokens].
	AlgorithmSlidingLog

	// AlgorithmConcurrency limits how many requests run at the same time. A request holds one of [Rate.Tokens] slots until
	// it releases it, and for [Rate.Per] at most, unless it renews it. See [Slots].
	AlgorithmConcurrency
)

func (a Algorithm) String() string {
	switch a {
	case AlgorithmContinuous:
		return "token bucket"
	case AlgorithmStepped:
		return "stepped bucket"
	case AlgorithmSlidingWindow:
		return "sliding window"
	case AlgorithmSlidingLog:
		return "sliding log"
	case AlgorithmConcurrency:
		return "concurrency limit"
	}
	return fmt.Sprintf("algorithm %d", uint8(a))
}

// An Anchor defines where the intervals of an [AlgorithmStepped] limit begin.
type Anchor uint8

const (
	// AnchorEpoch aligns intervals to the Unix epoch plus [Spec.Start]: all buckets of the limit step together.
	AnchorEpoch Anchor = iota

	// AnchorKey offsets each key's intervals by a hash of the key, so that clients do not all return together:
	// see [Limit.ForKey].
	AnchorKey

	// AnchorFirst starts an interval with the first take from a full bucket.
	AnchorFirst

	// AnchorCalendar starts intervals by the clocks of a time zone: see [Spec.Calendar].
	AnchorCalendar
)

// The layout of Limit.how. It is 0 for a plain continuous bucket. The third bit of the algorithm lies apart, so that stored
// limits keep their texts.
const (
	howAlgorithm = 3 | howFurther // three bits
	howAnchor    = 2              // two bits, shifted by this
	howQueue     = 1 << 4
	howFurther   = 1 << 5 // the bit of the algorithms from 4 on
	howFree      = 3 << 6 // unused bits
	howStart     = 8      // the rest, shifted by this: the start in microseconds, or the number of a calendar
	howShape     = 1<<howStart - 1
)

func (l Limit) Algorithm() Algorithm { return Algorithm(l.how&3 | l.how&howFurther>>3) }

// bits returns a as bits of Limit.how.
func (a Algorithm) bits() uint64 { return uint64(a)&3 | uint64(a)&4<<3 }

// Anchor returns where the intervals of an [AlgorithmStepped] limit begin. It is AnchorEpoch for all other limits.
func (l Limit) Anchor() Anchor { return Anchor(l.how >> howAnchor & 3) }

// Queued reports whether the limit has a queue for takes that must wait: see [Spec.Queue].
func (l Limit) Queued() bool { return l.how&howQueue != 0 }

// start returns the offset of a stepped limit's intervals, in [0, p).
func (l *Limit) start() int64 { return int64(l.how >> howStart) }

// ForKey returns the limit for one key. With [AnchorKey], the offset of its intervals is the key's 64-bit FNV-1a
// hash modulo the interval. Other limits are the same for all keys. Stores expect the result of ForKey.
func (l Limit) ForKey(key string) Limit {
	if l.Anchor() != AnchorKey {
		return l
	}
	hash := uint64(0xcbf29ce484222325)
	for i := range len(key) {
		hash = (hash ^ uint64(key[i])) * 0x100000001b3
	}
	l.how = l.how&howShape | hash%uint64(l.p)<<howStart
	return l
}

// EqualExceptKey reports whether l and m differ at most in their keys: see [Limit.ForKey].
func (l *Limit) EqualExceptKey(m *Limit) bool {
	return l.capacity == m.capacity && l.debt == m.debt && l.n == m.n && l.p == m.p &&
		(l.how == m.how || l.how>>howAnchor&3 == uint64(AnchorKey) && (l.how^m.how)&howShape == 0)
}
