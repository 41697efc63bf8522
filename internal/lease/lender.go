// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"time"

	"github.com/metehq/mete/bucket"
)

// A Lender is the store's side of leases. It is safe for concurrent use, and returns when the context ends.
//
// In addition to its state, a bucket has one entry per holder: (holder, amount, spent, seq, until). X is the sum
// of their amounts. Before each operation on the bucket, the store settles it to now, which is never before the
// state's AsOf:
//
//	settle: while an entry has until ≤ now, the earliest first:
//	            refill to that until; at least X counts as spent; remove the entry
//	        refill to now; at least X counts as spent
//
// The history of a bucket with holds has the least that was missing: see package bucket. A settle counts only the
// tokens missing beside X, because a refill stops at X.
//
// X is always the current sum, capped at the capacity. Denied takes still write nothing, because settling is
// idempotent. Takes then work as usual. After a refund, at least X counts as spent. A reset keeps the entries,
// and X counts as spent. A state can be deleted when the bucket would be full without any entry. For a bucket
// that refills n every p, that is the later of its usual full-after and the last until + X·p/n.
//
// A take that costs more than capacity − X waits until enough entries have ended. Package leasetest implements
// all of this in Go.
//
// Borrow is atomic:
//
//  1. Settle.
//  2. Let e be the holder's entry. If e.seq ≥ seq, the loan is stale: return an error and write nothing.
//  3. With e, kept is true: return max(0, e.amount − (spent − e.spent) − keep) to the bucket and remove e.
//     Without e, kept is false, and keep counts as 0. At least X + keep then counts as spent.
//  4. Charge granted = the bucket's tokens in whole thousandths, between 0 and want. A history records it as a take.
//  5. If keep + granted > 0, write (holder, keep + granted, spent, seq, now + TTL).
//
// A lost or late answer thus does no harm: the next loan returns the tokens that the node does not know of.
type Lender interface {
	// Borrow answers a loan. After an error, the outcome is unknown, and a later answer is ignored.
	Borrow(ctx context.Context, loan Loan) (Grant, error)
}

// A Loan is a holder's request for tokens, with a report of its previous lease.
type Loan struct {
	Key   string
	Limit bucket.Limit

	// Holder identifies the entry. It is unique for each period in which a node leases a bucket.
	Holder string

	// Seq numbers the loans of a holder in ascending order.
	Seq uint64

	// Spent is the total that the holder has spent. It never decreases. After a grant without Kept, tokens that were spent
	// during its loan do not count: they were of an entry that has ended.
	Spent bucket.Tokens

	// Keep is the amount that the holder keeps. The rest of its entry that is not in Spent returns to the bucket. If the entry
	// has fewer tokens, all of it returns. The entry that the holder keeps has then ended, and a loan with a lost answer made
	// another one.
	Keep bucket.Tokens

	// Want is the requested amount. If Want and Keep are 0, the entry ends.
	Want bucket.Tokens

	// TTL is the lifetime of the entry from now, by the store's clock.
	TTL time.Duration
}

type Grant struct {
	Tokens bucket.Tokens // of Want
	Kept   bool          // an entry had the kept tokens

	// State is the bucket after the loan, and At the store's instant.
	State bucket.State
	At    bucket.Instant
}
