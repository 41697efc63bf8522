// SPDX-License-Identifier: Apache-2.0

package jwtclaims

import "time"

// Stats holds the counters of a [Verifier] since its creation.
type Stats struct {
	// Verified counts tokens that passed verification. Cached counts lookups of cached tokens.
	Verified, Cached int64

	// Rejected counts invalid tokens by reason. It has an entry for every reason. A token that is sent again
	// within a second may not be counted again.
	Rejected map[Reason]int64

	// Keys is the number of active keys.
	Keys int

	// Reads counts successful reads of the key set, ReadsFailed counts failed ones, and Changes counts the reads
	// that found a change, including the first.
	Reads, ReadsFailed, Changes int64

	// ReadAt is the time of the last successful read, or zero.
	ReadAt time.Time
}

// Stats returns the counters. They are not read atomically.
func (v *Verifier) Stats() Stats {
	s := Stats{
		Verified: v.verified.Load(), Cached: v.cached.Load(), Rejected: v.refused.all(), Keys: v.keys.Load().count,
		Reads: v.read.Load(), ReadsFailed: v.failed.Load(), Changes: v.changed.Load(),
	}
	if at := v.readAt.Load(); at != 0 {
		s.ReadAt = time.Unix(0, at)
	}
	return s
}
