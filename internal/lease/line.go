// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"sync/atomic"
	"time"

	"github.com/metehq/mete/bucket"
)

// A line is a bucket that is leased: what the node holds of it, and how it goes on
// borrowing.
type line struct {
	key    string
	holder string
	limit  bucket.Limit
	share  bucket.Tokens // the most that is held

	_     [64]byte // the purse is written by every take, what follows hardly ever
	purse purse
	_     [64]byte

	until atomic.Int64 // by the node's clock: what is in the purse is not spent from then on
	low   atomic.Int64 // with less than this in the purse it is time for a loan
	next  atomic.Int64 // there is none before
	known atomic.Pointer[knowledge]

	missed atomic.Int64 // tokens that were asked for and not there, so far
	cost   atomic.Int64 // of one of the takes

	leaving atomic.Bool // it has been said that the line should retire

	// busy is held by whoever looks after the line, from before a loan is made up
	// until it has been settled. It guards the fields below.
	busy atomic.Bool
	credit
}

// knowledge is what the store said about the bucket.
type knowledge struct {
	spent      int64 // as in a state, in the limit's unit
	asOf, at   bucket.Instant
	when       time.Duration // at, by the node's clock
	unit, most int64         // the limit's, and what is missing of an empty bucket
}

// learn keeps what a grant says of the bucket, at now or before.
func (n *line) learn(g Grant, now time.Duration) {
	unit := n.limit.Unit()
	after, _ := n.limit.Spend(g.State, g.At, 0, bucket.Forced) // in the limit's unit, whatever it was in
	n.known.Store(&knowledge{
		spent: after.Spent, asOf: after.AsOf, at: g.At, when: now,
		unit: unit, most: int64(n.limit.Capacity()) * unit,
	})
}

// credit is the part of a line that one caller at a time sees.
type credit struct {
	seq      uint64
	put      bucket.Tokens // all that was ever put in the purse, less what was set aside
	told     bucket.Tokens // asked for, as of the last count
	seen     bucket.Tokens // asked for, as of the last tick
	quiet    int           // ticks at which that was the same
	aside    bucket.Tokens // taken out of the purse; the store has not confirmed that it is back
	size     bucket.Tokens // how much the purse should hold
	asked    time.Duration // when the last loan was made up
	trip     time.Duration // how long the last answer took
	pause    time.Duration // after the last failure; 0: it was none
	entry    bool          // the store may have an entry
	retry    time.Duration // there is no loan before, not even of a line that retires
	retired  time.Duration // since when all goes back
	retiring bool
}

// grab makes the caller the one who looks after the line, if nobody is. It gives
// it up by clearing busy.
func (n *line) grab() bool { return !n.busy.Load() && n.busy.CompareAndSwap(false, true) }

// asks is all that was asked for so far, whether it was there or not.
func (n *line) asks() bucket.Tokens {
	return n.put - n.purse.held() + bucket.Tokens(n.missed.Load())
}

// show fills in the snapshot of a take: the bucket as of the last loan, refilled
// since, and the rest of the slice.
func (n *line) show(snap *bucket.Snapshot, now time.Duration, cost, rest bucket.Tokens) {
	k := n.known.Load()
	spent := min(max(k.spent-int64(rest)*k.unit, 0), k.most)
	at := k.at.Add(now - k.when)
	var v bucket.Verdict
	if n.limit.Algorithm() == bucket.Continuous {
		_, _, v = n.limit.SpendOwn(spent, k.asOf, at, 0, bucket.Forced)
	} else {
		_, v = n.limit.Spend(bucket.State{Spent: spent, AsOf: k.asOf, Unit: k.unit}, at, 0, bucket.Forced)
	}
	v.Show(snap, &n.limit, cost, at)
}
