// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"sync/atomic"

	"github.com/metehq/mete/bucket"
)

// Stats count what a [Limiter] has decided without its store since it was made.
// Peeks and shadow rules do not count. Tokens count once for each bucket that
// they should have been taken from.
type Stats struct {
	Open   uint64 // decisions that let a request through
	Closed uint64 // that refused one
	Local  uint64 // that the buckets of the process made

	// LetThrough was admitted by limits that say open, and charged to no bucket.
	LetThrough bucket.Tokens

	// SpentLocally was taken from local buckets. Each token of it is, sooner or
	// later, in exactly one of the next three. Like all but Unsettled it never falls.
	SpentLocally bucket.Tokens

	// Charged was charged to the store when it answered again.
	Charged bucket.Tokens

	// Refilled came back to the local buckets before that: it was given back, or is
	// the process's share of what the store's bucket refills. This is more than the
	// limit admits only where other processes reached the store meanwhile, and took
	// the same from there.
	Refilled bucket.Tokens

	// Excess could neither be charged, because the bucket may not owe it, nor kept
	// in mind, because there were too many keys.
	Excess bucket.Tokens

	// Unsettled is the number of keys with something that is yet to be charged or
	// to be refilled.
	Unsettled int
}

// counts are the [Stats] as they grow.
type counts struct {
	open, closed, local                         atomic.Uint64
	through, spent, charged, refilled, excessed atomic.Int64
}

// Stats returns the numbers as they are.
func (l *Limiter) Stats() Stats {
	c := &l.counts
	s := Stats{
		Open: c.open.Load(), Closed: c.closed.Load(), Local: c.local.Load(),
		LetThrough: bucket.Tokens(c.through.Load()), SpentLocally: bucket.Tokens(c.spent.Load()),
		Charged: bucket.Tokens(c.charged.Load()), Refilled: bucket.Tokens(c.refilled.Load()), Excess: bucket.Tokens(c.excessed.Load()),
	}
	if l.fallback != nil {
		s.Unsettled = int(l.fallback.ledger.size.Load())
	}
	return s
}
