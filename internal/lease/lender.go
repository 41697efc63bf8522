// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"time"

	"github.com/metehq/mete/bucket"
)

// A Lender is the store's side. It is safe for concurrent use, and returns when
// the context is done.
//
// Beside its state a bucket has entries, one for each holder: (holder, amount,
// spent, seq, until). X is the sum of their amounts. Whatever the store does to
// the bucket, it does this first, at now, which is never before the state's AsOf:
//
//	settle: while an entry has until ≤ now, the earliest first:
//	            refill to that until, and at least X is missing; remove the entry
//	        refill to now, and at least X is missing
//
// where X, as always, is the sum at that moment, and no more than the capacity
// need be missing. Denied takes still write nothing: settling again comes to the
// same. Then takes are as ever. After a refund at least X is missing. A reset
// leaves the entries, and X missing. A state may be forgotten when it would be
// full with all entries gone: for a bucket that refills n every p that is the
// later of its plain full-after and the last until + X·p/n.
//
// A take whose cost is above capacity − X has to wait until enough entries have
// ended. Package leasetest has all of this in Go.
//
// Borrow, in one step:
//
//  1. settle
//  2. e is the holder's entry. If e.seq ≥ seq the loan is from the past: answer
//     with an error, write nothing.
//  3. With e: kept is true, give back max(0, e.amount − (spent − e.spent) − keep)
//     to the bucket and remove e. Without: kept is false, and keep is taken as 0.
//     At least X + keep is missing afterwards.
//  4. granted = what the bucket holds, in whole thousandths, at most want, at
//     least 0. Charge it.
//  5. If keep + granted > 0 write (holder, keep + granted, spent, seq, now + TTL).
//
// So a loan whose answer got lost does no harm, and neither does one that comes
// late: the next one gives back what the node does not know of.
type Lender interface {
	// Borrow answers a loan. After an error its outcome is taken to be unknown, and
	// an answer that comes later is not looked at.
	Borrow(ctx context.Context, loan Loan) (Grant, error)
}

// A Loan is what a holder asks of a bucket, and tells about what it has already.
type Loan struct {
	Key   string
	Limit bucket.Limit

	// Holder names the entry. It is new for every line of loans that a node begins,
	// and never used again.
	Holder string

	// Seq counts the loans of a holder. It only grows.
	Seq uint64

	// Spent is all that the holder has spent so far. It only grows.
	Spent bucket.Tokens

	// Keep is what the holder has and goes on spending. All else of its entry that
	// is not in Spent goes back to the bucket.
	Keep bucket.Tokens

	// Want is what it would like to have in addition. Both 0 end the entry.
	Want bucket.Tokens

	// TTL is how long the entry lasts from now on, by the store's clock.
	TTL time.Duration
}

// A Grant answers a Loan.
type Grant struct {
	Tokens bucket.Tokens // of Want
	Kept   bool          // there was an entry: what the holder keeps is written down

	// State is the bucket afterwards, and At the store's instant.
	State bucket.State
	At    bucket.Instant
}
