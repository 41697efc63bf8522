// SPDX-License-Identifier: Apache-2.0

// Package leasetest has the store's side of leases in plain Go: the reference that
// stores are compared with, and a [lease.Lender] for tests.
package leasetest

import (
	"errors"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/lease"
)

// A Book is one bucket and what of it is lent. Its zero value is a full bucket. It
// is a value: a copy that shares no entries is made by [Book.Clone]. All its
// methods take the limit and the store's instant, which may be earlier than the
// last one.
type Book struct {
	State   bucket.State
	Entries []Entry // in no order; no two of one holder

	// Unfloored leaves out that X must be missing while X is lent, to see that
	// tests notice.
	Unfloored bool
}

// An Entry is what one holder has.
type Entry struct {
	Holder string
	Amount bucket.Tokens
	Spent  bucket.Tokens // as the holder counts, when Amount was written
	Seq    uint64
	Until  bucket.Instant
}

// ErrStale is the answer to a loan that is older than the entry.
var ErrStale = errors.New("leasetest: a later loan of this holder has been answered")

// Lent is X: the sum of the entries.
func (b *Book) Lent() (x bucket.Tokens) {
	for _, e := range b.Entries {
		x += e.Amount
	}
	return x
}

// Clone returns a copy of b.
func (b *Book) Clone() Book {
	c := *b
	c.Entries = append([]Entry(nil), b.Entries...)
	return c
}

// Settle brings the book to now, and returns that: an instant before the state's
// own is taken as that one.
func (b *Book) Settle(l *bucket.Limit, now bucket.Instant) bucket.Instant {
	now = max(now, b.State.AsOf)
	for i := b.earliest(); i >= 0 && b.Entries[i].Until <= now; i = b.earliest() {
		b.refill(l, max(b.Entries[i].Until, b.State.AsOf))
		b.remove(i)
	}
	b.refill(l, now)
	return now
}

// Take is a take as of any bucket. The wait of a cost that is above what can be
// there while so much is lent is that until enough entries have ended.
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
		snap.RetryAfter = postponed(late, snap.RetryAfter)
	}
	return snap
}

// retryAfter is the wait for cost from at, to which b is settled.
func (b *Book) retryAfter(l *bucket.Limit, at bucket.Instant, cost bucket.Tokens) time.Duration {
	c := b.Clone()
	then := at
	for len(c.Entries) > 0 && c.Lent() > l.Capacity()-cost {
		then = c.Settle(l, max(c.Entries[c.earliest()].Until, then))
	}
	wait := l.Peek(c.State, then, cost, 0).RetryAfter
	if wait == bucket.Never {
		return wait
	}
	return postponed(then-at, wait)
}

// postponed is a wait that begins so many microseconds later, at most [bucket.Longest].
func postponed(us bucket.Instant, wait time.Duration) time.Duration {
	late := min(time.Duration(us)*time.Microsecond, bucket.Longest)
	return late + min(wait, bucket.Longest-late)
}

// FullAfter is how long it takes until the bucket would be full if all entries
// ended when they do: then it may be forgotten. It is rounded up, and may be too
// long.
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
	all := bucket.State{Spent: int64(c.Lent()) * l.Unit(), AsOf: last, Unit: l.Unit()}
	return max(full, postponed(last-at, l.Peek(all, last, 0, 0).FullAfter()))
}

// Refund gives amount back.
func (b *Book) Refund(l *bucket.Limit, now bucket.Instant, amount bucket.Tokens) {
	now = b.Settle(l, now)
	b.State = l.Refund(b.State, now, amount)
	b.floor(l, b.Lent())
}

// Reset makes the bucket as full as it can be while so much is lent.
func (b *Book) Reset(l *bucket.Limit, now bucket.Instant) {
	now = b.Settle(l, now)
	b.State = bucket.State{AsOf: now, Unit: l.Unit()}
	b.floor(l, b.Lent())
}

// Borrow answers a loan as [lease.Lender] says. A stale loan changes nothing.
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
		keep, kept = loan.Keep, true
		if back := e.Amount - (loan.Spent - e.Spent) - keep; back > 0 {
			b.State = l.Refund(b.State, now, back)
		}
		b.remove(i)
		break
	}
	b.floor(l, b.Lent()+keep)
	granted := min(loan.Want, l.Peek(b.State, now, 0, 0).Remaining())
	b.State, _ = l.Spend(b.State, now, granted, 0)
	if keep+granted > 0 {
		b.Entries = append(b.Entries, Entry{loan.Holder, keep + granted, loan.Spent, loan.Seq, now.Add(loan.TTL)})
	}
	return lease.Grant{Tokens: granted, Kept: kept, State: b.State, At: now}, nil
}

// refill brings the state to at, while X is what is lent now.
func (b *Book) refill(l *bucket.Limit, at bucket.Instant) {
	b.State, _ = l.Spend(b.State, at, 0, bucket.Forced)
	b.floor(l, b.Lent())
}

// floor sees to it that x is missing.
func (b *Book) floor(l *bucket.Limit, x bucket.Tokens) {
	if !b.Unfloored {
		b.State.Unit = l.Unit()
		b.State.Spent = max(b.State.Spent, int64(min(x, l.Capacity()))*l.Unit())
	}
}

// earliest is the index of the entry that ends first, or -1.
func (b *Book) earliest() int {
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
