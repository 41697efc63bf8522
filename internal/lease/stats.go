// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"sync/atomic"

	"github.com/metehq/mete/bucket"
)

// tally counts events of a Borrower, except takes from leases.
type tally struct {
	loans, failures, refused          atomic.Uint64
	granted, returned, lost, setAside atomic.Int64
}

// Stats holds counters and gauges of a [Borrower]. They are not an atomic snapshot: amounts that move during the call may
// be missing.
type Stats struct {
	Leased   int    // buckets with leased tokens
	Loans    uint64 // loans sent, including returns
	Failures uint64 // loans without an answer
	Refused  uint64 // hot buckets not leased because of MaxKeys

	Granted  bucket.Tokens // granted tokens that this node knows of
	Spent    bucket.Tokens // granted and spent
	Returned bucket.Tokens
	Lost     bucket.Tokens // granted, neither spent nor returned in time

	// Unspent is the rest: tokens in purses, and tokens with an unconfirmed return.
	Unspent bucket.Tokens

	// WorstUnderUse is the most that this node may now withhold from other nodes over all leased buckets, 2·s
	// each. Lost is not included. See the package documentation.
	WorstUnderUse bucket.Tokens
}

// Efficiency returns the spent part of the granted tokens that are no longer held; 1 if there are none.
func (s Stats) Efficiency() float64 {
	gone := s.Granted - s.Unspent
	if gone <= 0 {
		return 1
	}
	return float64(s.Spent) / float64(gone)
}

// Stats returns the current counters.
func (b *Borrower) Stats() Stats {
	s := Stats{
		Loans:    b.count.loans.Load(),
		Failures: b.count.failures.Load(),
		Refused:  b.count.refused.Load(),
		Granted:  bucket.Tokens(b.count.granted.Load()),
		Returned: bucket.Tokens(b.count.returned.Load()),
		Lost:     bucket.Tokens(b.count.lost.Load()),
		Unspent:  bucket.Tokens(b.count.setAside.Load()),
	}
	lines := *b.leased.Load()
	s.Leased = len(lines)
	for _, n := range lines {
		s.Unspent += n.purse.heldTokens()
		s.WorstUnderUse += 2 * n.share
	}
	s.Spent = max(s.Granted-s.Returned-s.Lost-s.Unspent, 0)
	return s
}
