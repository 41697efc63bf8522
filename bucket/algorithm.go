// SPDX-License-Identifier: Apache-2.0

package bucket

import "fmt"

// An Algorithm is how a limit gives back what was spent.
type Algorithm uint8

const (
	// Continuous is the token bucket: it refills all the time.
	Continuous Algorithm = iota

	// Stepped is a token bucket that refills by [Rate.Tokens] at once, at whole
	// intervals of [Rate.Per]. With a capacity of one interval's tokens it is
	// a fixed window, with a higher one a window that rolls over.
	Stepped

	// SlidingWindow counts what was spent in this window of [Rate.Per] and in
	// the one before, of which it counts the share that a window ending now
	// would still cover. It admits less than twice [Rate.Tokens] in any window:
	// it is an approximation, and cheap.
	SlidingWindow

	// SlidingLog records every cost with its instant and admits no more than
	// [Rate.Tokens] in any window of [Rate.Per], exactly. It needs memory for
	// each cost in the window: see [MaxLogTokens].
	SlidingLog
)

// String returns the name of a, such as "sliding window".
func (a Algorithm) String() string {
	switch a {
	case Continuous:
		return "token bucket"
	case Stepped:
		return "stepped bucket"
	case SlidingWindow:
		return "sliding window"
	case SlidingLog:
		return "sliding log"
	}
	return fmt.Sprintf("algorithm %d", uint8(a))
}

// An Anchor is where a [Stepped] limit's intervals begin.
type Anchor uint8

const (
	// AnchorEpoch counts intervals from the Unix epoch, moved by [Spec.Start]:
	// all buckets of the limit step together.
	AnchorEpoch Anchor = iota

	// AnchorKey moves each key's intervals by a hash of the key, so that not all
	// clients return at once: see [Limit.For].
	AnchorKey

	// AnchorFirst begins an interval with the take that finds the bucket full.
	AnchorFirst
)

// The layout of Limit.how. It is 0 for a plain continuous bucket.
const (
	howAlgorithm = 3 // two bits
	howAnchor    = 2 // two bits, shifted by this
	howQueue     = 1 << 4
	howStart     = 8 // the rest, shifted by this: the start in microseconds
	howShape     = 1<<howStart - 1
)

// Algorithm is how the limit gives back what was spent.
func (l Limit) Algorithm() Algorithm { return Algorithm(l.how & howAlgorithm) }

// Anchor is where the intervals of a [Stepped] limit begin, and AnchorEpoch of
// all others.
func (l Limit) Anchor() Anchor { return Anchor(l.how >> howAnchor & 3) }

// Queued reports whether a take that does not fit may be admitted to start
// later: see [Spec.Queue].
func (l Limit) Queued() bool { return l.how&howQueue != 0 }

// start is where the intervals of a stepped limit begin, in [0, p).
func (l *Limit) start() int64 { return int64(l.how >> howStart) }

// For returns the limit as it holds for one key: with [AnchorKey], the start of
// its intervals is the key's 64-bit FNV-1a hash modulo the interval. Other
// limits are the same for all keys. A store is given limits that hold for their
// keys.
func (l Limit) For(key string) Limit {
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

// Same reports whether two limits are one, though each may hold for another key: see
// [Limit.For].
func (l *Limit) Same(m *Limit) bool {
	return l.capacity == m.capacity && l.debt == m.debt && l.n == m.n && l.p == m.p &&
		(l.how == m.how || l.how>>howAnchor&3 == uint64(AnchorKey) && (l.how^m.how)&howShape == 0)
}
