// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"sync/atomic"

	"github.com/metehq/mete/bucket"
)

// tally is what a Borrower counts, none of it in a take that is answered here.
type tally struct {
	loans, failures, refused       atomic.Uint64
	granted, returned, lost, aside atomic.Int64
}

// Stats says what a [Borrower] has done so far, and holds. Amounts that move while
// it is made up may be missing from one and not yet be in another.
type Stats struct {
	Leased   int    // buckets of which a slice is held
	Loans    uint64 // asked for, the returns among them
	Failures uint64 // loans that were not answered
	Refused  uint64 // times that a hot bucket was not leased for MaxKeys

	Granted  bucket.Tokens // lent, as far as this node knows
	Spent    bucket.Tokens // of that
	Returned bucket.Tokens
	Lost     bucket.Tokens // charged and never spent: it was not given back in time

	// Unspent is the rest: what is in the purses, and what the store has not
	// confirmed to be back.
	Unspent bucket.Tokens

	// WorstUnderUse is the most that this node may keep from others, now, in all
	// leased buckets together: 2·s for each. Lost comes on top of it. See the
	// package's description.
	WorstUnderUse bucket.Tokens
}

// Efficiency is how much of what was granted and is not there any more was spent:
// 1 where nothing was ever borrowed in vain.
func (s Stats) Efficiency() float64 {
	gone := s.Granted - s.Unspent
	if gone <= 0 {
		return 1
	}
	return float64(s.Spent) / float64(gone)
}

// Stats says how things are.
func (b *Borrower) Stats() Stats {
	s := Stats{
		Loans:    b.count.loans.Load(),
		Failures: b.count.failures.Load(),
		Refused:  b.count.refused.Load(),
		Granted:  bucket.Tokens(b.count.granted.Load()),
		Returned: bucket.Tokens(b.count.returned.Load()),
		Lost:     bucket.Tokens(b.count.lost.Load()),
		Unspent:  bucket.Tokens(b.count.aside.Load()),
	}
	lines := *b.lines.Load()
	s.Leased = len(lines)
	for _, n := range lines {
		s.Unspent += n.purse.held()
		s.WorstUnderUse += 2 * n.share
	}
	s.Spent = max(s.Granted-s.Returned-s.Lost-s.Unspent, 0)
	return s
}
