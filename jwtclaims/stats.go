// SPDX-License-Identifier: Apache-2.0

package jwtclaims

import "time"

// Stats are what a [Verifier] has counted since it was made.
type Stats struct {
	// Verified are tokens that were good, Cached how often one of them was asked
	// about again and remembered.
	Verified, Cached int64

	// Refused are tokens that were not good, by why. Every reason is there. A token
	// that is refused again within a second may not be counted again.
	Refused map[Reason]int64

	// Keys are those in force.
	Keys int

	// Reads is how often the key set was read, ReadsFailed how often it could not
	// be, and Changes how often it had changed, the first time included.
	Reads, ReadsFailed, Changes int64

	// ReadAt is when the key set was last read, changed or not; zero for never.
	ReadAt time.Time
}

// Stats returns what was counted. The counts are taken one after the other.
func (v *Verifier) Stats() Stats {
	s := Stats{
		Verified: v.verified.Load(), Cached: v.cached.Load(), Refused: v.refused.all(), Keys: v.keys.Load().count,
		Reads: v.read.Load(), ReadsFailed: v.failed.Load(), Changes: v.changed.Load(),
	}
	if at := v.readAt.Load(); at != 0 {
		s.ReadAt = time.Unix(0, at)
	}
	return s
}
