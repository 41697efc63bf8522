// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"sync/atomic"
	"time"

	"github.com/metehq/mete/bucket"
)

// A leasedBucket is a bucket with leased tokens, and the state of its loans.
type leasedBucket struct {
	key    string
	holder string
	limit  bucket.Limit
	share  bucket.Tokens // the most that is leased

	_     [64]byte // each take writes the purse, but rarely the other fields
	purse purse
	_     [64]byte

	until atomic.Int64 // by the node's clock: no spending from then on
	low   atomic.Int64 // below this amount, a loan is due
	next  atomic.Int64 // no loan before
	known atomic.Pointer[knowledge]

	missed atomic.Int64 // total of requested tokens that were not leased
	cost   atomic.Int64 // of a recent take

	leaving atomic.Bool // retiring was requested

	// busy is a lock that is held from the preparation of a loan until it is settled. It protects the fields
	// below.
	busy atomic.Bool
	credit
}

// knowledge is the store's last report about the bucket.
type knowledge struct {
	spent      int64 // as in a state, in the limit's unit
	asOf, at   bucket.Instant
	when       time.Duration // at, by the node's clock
	unit, most int64         // the limit's unit, and its capacity in it
}

func (n *leasedBucket) saveKnowledge(g Grant, now time.Duration) {
	unit := n.limit.Unit()
	after, _ := n.limit.Spend(g.State, g.At, 0, bucket.Forced) // converts to the limit's unit
	n.known.Store(&knowledge{
		spent: after.Spent, asOf: after.AsOf, at: g.At, when: now,
		unit: unit, most: int64(n.limit.Capacity()) * unit,
	})
}

// credit is the part of a leasedBucket that busy protects.
type credit struct {
	seq  uint64
	size bucket.Tokens // intended amount in the purse

	deposited bucket.Tokens // total put in the purse, less set aside
	setAside  bucket.Tokens // removed from the purse, return not confirmed
	reported  bucket.Tokens // requested, as of the last loan

	seen      bucket.Tokens // requested, as of the last tick
	idleTicks int           // ticks without a request

	asked   time.Duration // start of the last loan
	latency time.Duration // latency of the last loan
	pause   time.Duration // backoff after a failure; 0 after a success
	retry   time.Duration // no loan before, even while retiring

	entry    bool // the store may have an entry
	retiring bool
	retired  time.Duration // start of retiring
}

// tryAcquire acquires busy for the caller. The caller releases it by clearing it.
func (n *leasedBucket) tryAcquire() bool { return !n.busy.Load() && n.busy.CompareAndSwap(false, true) }

// totalRequested returns the total of requested tokens, including takes that the lease could not serve.
func (n *leasedBucket) totalRequested() bucket.Tokens {
	return n.deposited - n.purse.heldTokens() + bucket.Tokens(n.missed.Load())
}

// fillSnapshot fills in the snapshot of a take: the bucket as of the last loan, refilled since, plus the
// remaining leased tokens.
func (n *leasedBucket) fillSnapshot(snap *bucket.Snapshot, now time.Duration, cost, rest bucket.Tokens) {
	k := n.known.Load()
	spent := min(max(k.spent-int64(rest)*k.unit, 0), k.most)
	at := k.at.Add(now - k.when)
	var v bucket.Verdict
	if n.limit.Algorithm() == bucket.AlgorithmContinuous {
		_, _, v = n.limit.SpendOwn(spent, k.asOf, at, 0, bucket.Forced)
	} else {
		_, v = n.limit.Spend(bucket.State{Spent: spent, AsOf: k.asOf, Unit: k.unit}, at, 0, bucket.Forced)
	}
	v.Show(snap, &n.limit, cost, at)
}
