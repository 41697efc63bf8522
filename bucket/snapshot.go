// SPDX-License-Identifier: Apache-2.0

package bucket

import "time"

// A Snapshot shows one bucket at one instant, and what was decided about one
// cost. Its durations count from the caller's instant. It is a value.
type Snapshot struct {
	// Limit is the limit that was applied.
	Limit Limit

	// Allowed says whether this bucket admitted the cost.
	Allowed bool

	// RetryAfter is 0 where the cost was admitted, and else how long the caller
	// must wait: alone, it is admitted after exactly that long and denied a
	// microsecond earlier. It is [Never] for a cost that can never be admitted.
	RetryAfter time.Duration

	spent  int64 // what is missing, in units of 1/p
	behind int64 // how far the caller's instant lies before the bucket's, in µs
}

// Verdict returns s in brief.
func (s Snapshot) Verdict() Verdict { return Verdict{s.RetryAfter, s.spent, s.behind} }

// Remaining is what the bucket holds, after the cost where it was taken: rounded
// down to a thousandth, never below 0. Show people [Tokens.Whole] of it.
func (s Snapshot) Remaining() Tokens {
	if s.spent == 0 {
		return s.Limit.capacity
	}
	return max(s.Limit.capacity-Tokens(ceilDiv(s.spent, s.Limit.p)), 0)
}

// FullAfter is how long it takes until the bucket is full if nothing more is
// taken, rounded up to a microsecond. It is the time to live of a stored state.
func (s Snapshot) FullAfter() time.Duration {
	if s.spent == 0 {
		return 0
	}
	return micros(ceilDiv(s.spent, s.Limit.n), s.behind)
}

// Wait is how long the work of an admitted reservation has to wait: until the
// bucket owes nothing. It is 0 for tokens that were there.
func (s Snapshot) Wait() time.Duration {
	owed := s.spent - int64(s.Limit.capacity)*s.Limit.p
	if !s.Allowed || owed <= 0 {
		return 0
	}
	return micros(ceilDiv(owed, s.Limit.n), s.behind)
}
