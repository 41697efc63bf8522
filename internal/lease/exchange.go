// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"math"
	"time"

	"github.com/metehq/mete/bucket"
)

// prefetch sends a loan, unless one is in flight or it is too early.
func (b *Borrower) prefetch(n *leasedBucket, now time.Duration, cost bucket.Tokens) {
	if int64(now) < n.next.Load() || !n.tryAcquire() {
		return
	}
	n.cost.Store(int64(cost))
	b.exchange(n, now)
}

// exchange sends a loan. The caller has acquired n, and settle releases it.
func (b *Borrower) exchange(n *leasedBucket, now time.Duration) {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		n.busy.Store(false)
		return
	}
	b.flights.Add(1)
	b.mu.Unlock()
	b.sendLoan(n, b.prepareLoan(n, now))
}

func (b *Borrower) borrow(n *leasedBucket, loan Loan) {
	ctx, cancel := context.WithTimeout(b.ctx, b.config.TTL)
	defer cancel()
	grant, err := b.config.Lender.Borrow(ctx, loan)
	b.settle(n, loan, grant, err)
}

// prepareLoan returns the next loan of n, which the caller has acquired. It reports all spent tokens, and sets
// aside the tokens above the new size.
//
// Tokens in the purse can be spent while the loan is in flight: the store has recorded them, and will record them
// again.
func (b *Borrower) prepareLoan(n *leasedBucket, now time.Duration) Loan {
	n.resize(&b.config, now)
	held := n.purse.recount(n.size)
	keep := min(held, n.size)
	spent := n.deposited - held
	n.deposited -= held - keep
	n.setAside += held - keep
	b.count.setAside.Add(int64(held - keep))
	n.seq++
	n.asked = now
	if n.size > 0 {
		n.entry = true // even if no answer comes
	}
	b.count.loans.Add(1)
	return Loan{
		Key: n.key, Limit: n.limit, Holder: n.holder, Seq: n.seq,
		Spent: spent, Keep: keep, Want: n.size - keep,
		TTL: b.config.TTL + b.config.Grace,
	}
}

// resize adapts the size to the demand of a period plus a loan's latency, within a factor of two. The size does
// not shrink while the store does not answer, because tokens set aside would be useless then.
func (n *leasedBucket) resize(c *Config, now time.Duration) {
	if n.retiring {
		n.size = 0
		return
	}
	asks := n.totalRequested()
	passed := max(now-n.asked, time.Microsecond)
	horizon := c.Period + 2*n.latency
	wanted := bucket.Tokens(min(float64(asks-n.reported)*float64(horizon)/float64(passed), maxSlice))
	n.reported = asks
	least := max(c.MinSlice, 4*bucket.Tokens(n.cost.Load()))
	floor := n.size / 2
	if n.pause > 0 {
		floor = n.size
	}
	n.size = min(max(wanted, floor, least), max(2*n.size, least), n.share)
	n.low.Store(int64(n.size / 2))
}

func (b *Borrower) settle(n *leasedBucket, loan Loan, g Grant, err error) {
	defer b.flights.Done()
	now := b.now()
	if err != nil {
		b.count.failures.Add(1)
		n.pause = min(max(2*n.pause, b.config.Period), b.config.TTL)
		n.delayNext(now + n.pause)
	} else {
		b.accept(n, loan, g, now)
	}
	switch {
	case n.retiring && !n.entry:
		b.remove(n) // it stays acquired, as no other code uses it any more
		return
	case n.leaving.Load() && !n.retiring:
		b.retire(n, now)
		return
	}
	n.busy.Store(false)
	if n.leaving.Load() && n.tryAcquire() { // requestRetire was called while n was acquired
		b.maintain(n, now)
	}
}

func (b *Borrower) accept(n *leasedBucket, loan Loan, g Grant, now time.Duration) {
	n.pause, n.latency = 0, now-n.asked
	gone := &b.count.returned // receives the tokens set aside
	if !g.Kept {
		gone = &b.count.lost
		if loan.Keep > 0 { // the store has no record of them
			held := n.purse.recount(0)
			b.count.lost.Add(int64(held))
			// Tokens that were spent since the loan were of an entry that has ended. The next loan must not report them
			// for the new entry: the store would return tokens that the purse holds.
			n.missed.Add(int64(n.deposited - held - loan.Spent))
			n.deposited = loan.Spent
		}
	}
	gone.Add(int64(n.setAside))
	b.count.setAside.Add(-int64(n.setAside))
	n.setAside = 0
	granted := min(max(g.Tokens, 0), loan.Want)
	b.count.granted.Add(int64(granted))
	n.entry = granted > 0 || g.Kept && loan.Keep > 0
	n.saveKnowledge(g, now)
	if !n.retiring { // after a longer latency, nothing is spent before the next loan
		n.until.Store(int64(n.asked + b.config.TTL))
	}
	n.deposited += granted
	n.purse.add(granted)
	wait := time.Duration(0)
	if granted < loan.Want { // the bucket is empty
		need := max(b.config.MinSlice, bucket.Tokens(n.cost.Load()))
		wait = n.limit.Peek(g.State, g.At, 0, 0).RoomAfter(need)
		wait = min(max(wait, b.config.Period/2), b.config.TTL)
	}
	n.delayNext(now + wait)
}

// delayNext delays the next loan until then. A retiring bucket borrows no more for takes.
func (n *leasedBucket) delayNext(then time.Duration) {
	n.retry = then
	if n.retiring {
		then = math.MaxInt64
	}
	n.next.Store(int64(then))
}
