// SPDX-License-Identifier: Apache-2.0

// Package leasetest implements the store's side of leases in plain Go. It is the reference for stores, and has a
// [lease.Lender] for tests.
package leasetest

import (
	"errors"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/lease"
)

// A Book is one bucket and its leases. The zero value is a full bucket. [Book.Clone] copies it. The methods take
// the limit and the store's clock, which can run backward.
type Book struct {
	State   bucket.State
	Entries []Entry // unordered, at most one per holder

	// Unfloored disables the rule that leased tokens count as spent, to prove that tests detect it.
	Unfloored bool
}

// An Entry is the lease of one holder.
type Entry struct {
	Holder string
	Amount bucket.Tokens
	Spent  bucket.Tokens // the holder's counter when Amount was written
	Seq    uint64
	Until  bucket.Instant
}

// ErrStale is the error of a loan that is older than the entry.
var ErrStale = errors.New("leasetest: a later loan of this holder was already answered")

// Leased returns X, the sum of the entries.
func (b *Book) Leased() (x bucket.Tokens) {
	for _, e := range b.Entries {
		x += e.Amount
	}
	return x
}

func (b *Book) Clone() Book {
	c := *b
	c.Entries = append([]Entry(nil), b.Entries...)
	return c
}

// Settle updates the book to now, and returns the effective instant, which is not before the state's.
func (b *Book) Settle(l *bucket.Limit, now bucket.Instant) bucket.Instant {
	now = max(now, b.State.AsOf)
	for i := b.earliestEntry(); i >= 0 && b.Entries[i].Until <= now; i = b.earliestEntry() {
		b.refill(l, max(b.Entries[i].Until, b.State.AsOf))
		b.remove(i)
	}
	b.refill(l, now)
	return now
}

// Take takes like any bucket. If leases leave less than the cost, RetryAfter lasts until enough entries end.
func (b *Book) Take(l *bucket.Limit, now bucket.Instant, cost bucket.Tokens) bucket.Snapshot {
	c := b.Clone()
	at := c.Settle(l, now)
	after, snap := l.Take(c.State, at, cost)
	if !snap.Allowed {
		snap.RetryAfter = c.retryAfter(l, at, cost)
	} else {
		b.State, b.Entries = after, c.Entries
	}
	if late := at - now; late > 0 && snap.RetryAfter > 0 && snap.RetryAfter != bucket.Never {
		snap.RetryAfter = postpone(late, snap.RetryAfter)
	}
	return snap
}

// retryAfter returns the wait for cost after at, to which b is settled.
func (b *Book) retryAfter(l *bucket.Limit, at bucket.Instant, cost bucket.Tokens) time.Duration {
	c := b.Clone()
	then := at
	for len(c.Entries) > 0 && c.Leased() > l.Capacity()-cost {
		then = c.Settle(l, max(c.Entries[c.earliestEntry()].Until, then))
	}
	wait := l.Peek(c.State, then, cost, 0).RetryAfter
	if wait == bucket.Never {
		return wait
	}
	return postpone(then-at, wait)
}

// postpone returns a wait that starts us microseconds later, at most [bucket.LongestWait].
func postpone(us bucket.Instant, wait time.Duration) time.Duration {
	late := min(time.Duration(us)*time.Microsecond, bucket.LongestWait)
	return late + min(wait, bucket.LongestWait-late)
}

// FullAfter returns the time until the bucket is full if all entries expire. The bucket can be deleted then. The
// result is rounded up, and may be too long.
func (b *Book) FullAfter(l *bucket.Limit, now bucket.Instant) time.Duration {
	c := b.Clone()
	at := c.Settle(l, now)
	full := l.Peek(c.State, at, 0, 0).FullAfter()
	if len(c.Entries) == 0 {
		return full
	}
	last := at
	for _, e := range c.Entries {
		last = max(last, e.Until)
	}
	all := bucket.State{Spent: int64(c.Leased()) * l.Unit(), AsOf: last, Unit: l.Unit()}
	return max(full, postpone(last-at, l.Peek(all, last, 0, 0).FullAfter()))
}

// Refund returns amount to the bucket.
func (b *Book) Refund(l *bucket.Limit, now bucket.Instant, amount bucket.Tokens) {
	now = b.Settle(l, now)
	b.State = l.Refund(b.State, now, amount)
	b.floor(l, b.Leased())
}

// Reset fills the bucket, except for leased tokens.
func (b *Book) Reset(l *bucket.Limit, now bucket.Instant) {
	now = b.Settle(l, now)
	b.State = bucket.State{AsOf: now, Unit: l.Unit()}
	b.floor(l, b.Leased())
}

// Borrow answers a loan: see [lease.Lender]. A stale loan changes nothing.
func (b *Book) Borrow(loan lease.Loan, now bucket.Instant) (lease.Grant, error) {
	l, before := &loan.Limit, b.Clone()
	now = b.Settle(l, now)
	keep, kept := bucket.Tokens(0), false
	for i, e := range b.Entries {
		if e.Holder != loan.Holder {
			continue
		}
		if e.Seq >= loan.Seq {
			*b = before
			return lease.Grant{}, ErrStale
		}
		back := e.Amount - (loan.Spent - e.Spent)
		if loan.Keep <= back { // otherwise the entry that the holder keeps has ended, and this one was granted by a lost answer
			keep, kept = loan.Keep, true
			back -= keep
		}
		if back > 0 {
			b.State = l.Refund(b.State, now, back)
		}
		b.remove(i)
		break
	}
	b.floor(l, b.Leased()+keep)
	granted := min(loan.Want, l.Peek(b.State, now, 0, 0).Remaining())
	b.State, _ = l.Spend(b.State, now, granted, 0)
	if keep+granted > 0 {
		b.Entries = append(b.Entries, Entry{loan.Holder, keep + granted, loan.Spent, loan.Seq, now.Add(loan.TTL)})
	}
	return lease.Grant{Tokens: granted, Kept: kept, State: b.State, At: now}, nil
}

func (b *Book) refill(l *bucket.Limit, at bucket.Instant) {
	b.State, _ = l.Spend(b.State, at, 0, bucket.Forced)
	b.floor(l, b.Leased())
}

func (b *Book) floor(l *bucket.Limit, x bucket.Tokens) {
	if !b.Unfloored {
		b.State.Unit = l.Unit()
		b.State.Spent = max(b.State.Spent, int64(min(x, l.Capacity()))*l.Unit())
	}
}

func (b *Book) earliestEntry() int {
	first := -1
	for i, e := range b.Entries {
		if first < 0 || e.Until < b.Entries[first].Until {
			first = i
		}
	}
	return first
}

func (b *Book) remove(i int) {
	b.Entries = append(b.Entries[:i:i], b.Entries[i+1:]...)
}
