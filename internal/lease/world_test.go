// SPDX-License-Identifier: Apache-2.0

package lease_test

import (
	"container/heap"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/lease"
	"github.com/metehq/mete/internal/lease/leasetest"
	"github.com/metehq/mete/internal/testseed"
)

// A world is nodes that share one bucket in a store, over a network, in virtual
// time. Everything happens in events, one after another, and all chance comes from
// one seed: what went wrong once goes wrong again.
type world struct {
	t      *testing.T
	r      *rand.Rand
	now    time.Duration // true time, which nobody sees
	events schedule
	number int

	limit  bucket.Limit
	book   leasetest.Book
	offset time.Duration // of the store's clock
	chance chances
	refuse bool          // the network takes no loans
	held   time.Duration // it keeps loans back until then
	nodes  []*node
	began  int // nodes so far

	watch func() // after every event

	record   []happening
	lent     bucket.Tokens // what the store granted
	back     bucket.Tokens // what it got back
	spent    bucket.Tokens // of that, by nodes
	over     bucket.Tokens // entries that ended by themselves
	unknown  bucket.Tokens // granted, and the answer was lost or too late
	answered int
	failed   int
}

// chances are how likely things go wrong, of 1.
type chances struct {
	loseRequest, loseReply, late float64
	untake                       float64 // another bucket denies what was taken here
}

// A happening is what a bucket that is asked every time would have seen.
type happening struct {
	at       bucket.Instant
	amount   bucket.Tokens
	kind     int
	canceled bool
}

const (
	admitted = iota
	refunded
	reset
)

const key = "bucket"

func newWorld(t *testing.T, seed uint64, spec bucket.Spec) *world {
	t.Helper()
	limit, _, err := spec.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return &world{t: t, r: rand.New(testseed.PCG(seed, 4)), limit: limit}
}

type event struct {
	at     time.Duration
	number int // events of one instant happen in the order they were planned
	do     func()
}

type schedule []event

func (s schedule) Len() int { return len(s) }
func (s schedule) Less(i, j int) bool {
	return s[i].at < s[j].at || s[i].at == s[j].at && s[i].number < s[j].number
}
func (s schedule) Swap(i, j int) { s[i], s[j] = s[j], s[i] }
func (s *schedule) Push(e any)   { *s = append(*s, e.(event)) }
func (s *schedule) Pop() any {
	last := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return last
}

// after plans do.
func (w *world) after(d time.Duration, do func()) {
	w.number++
	heap.Push(&w.events, event{w.now + max(d, 0), w.number, do})
}

// run lets d pass.
func (w *world) run(d time.Duration) {
	until := w.now + d
	for len(w.events) > 0 && w.events[0].at <= until {
		e := heap.Pop(&w.events).(event)
		w.now = e.at
		e.do()
		w.check()
		if w.watch != nil {
			w.watch()
		}
	}
	w.now = until
}

// instant is what the store's clock says.
func (w *world) instant() bucket.Instant { return bucket.Instant(1e15).Add(w.now + w.offset) }

// bucketTime is the instant in the bucket, where time never runs backwards.
func (w *world) bucketTime() bucket.Instant { return max(w.instant(), w.book.State.AsOf) }

// settle is done before whatever the store does, to see which entries end.
func (w *world) settle() {
	now := w.bucketTime()
	for _, e := range w.book.Entries {
		if e.Until <= now {
			w.over += e.Amount
		}
	}
	w.book.Settle(&w.limit, w.instant())
}

// missing is what the bucket misses, in its units.
func (w *world) missing() int64 {
	c := w.book.Clone()
	c.Settle(&w.limit, w.instant())
	return c.State.Spent
}

// take asks the store itself.
func (w *world) take(cost bucket.Tokens) {
	w.settle()
	if w.book.Take(&w.limit, w.instant(), cost).Allowed {
		w.record = append(w.record, happening{at: w.bucketTime(), amount: cost})
	}
}

func (w *world) refund(amount bucket.Tokens) {
	w.settle()
	w.book.Refund(&w.limit, w.instant(), amount)
	w.record = append(w.record, happening{at: w.bucketTime(), amount: amount, kind: refunded})
}

func (w *world) reset() {
	w.settle()
	w.book.Reset(&w.limit, w.instant())
	w.record = append(w.record, happening{at: w.bucketTime(), kind: reset})
}

// step sets the store's clock. The bucket notices.
func (w *world) step(d time.Duration) {
	w.offset += d
	w.take(1)
}

// borrow is a loan that has come to the store.
func (w *world) borrow(loan lease.Loan) (lease.Grant, error) {
	w.settle()
	before := w.book.State.Spent
	g, err := w.book.Borrow(loan, w.instant())
	if err == nil {
		w.lent += g.Tokens
		w.back += g.Tokens - bucket.Tokens((w.book.State.Spent-before)/w.limit.Unit())
	}
	return g, err
}

// check is what holds after every event.
func (w *world) check() {
	c := w.book.Clone()
	now := c.Settle(&w.limit, w.instant())
	if c.State.Spent < int64(min(c.Lent(), w.limit.Capacity()))*w.limit.Unit() && !c.Unfloored {
		w.t.Fatalf("%v: %v is lent, and only %d units are missing", w.now, c.Lent(), c.State.Spent)
	}
	for _, n := range w.nodes {
		held := bucket.Tokens(n.borrower.Held(key, n.clock()))
		var written bucket.Tokens
		for _, e := range c.Entries {
			if n.owns(e.Holder) && e.Until > now {
				written += e.Amount
			}
		}
		if held > written {
			w.t.Fatalf("%v: %s may spend %v, and %v is written down", w.now, n.name, held, written)
		}
		if share := bucket.Tokens(n.borrower.ShareOf(key)); held > share {
			w.t.Fatalf("%v: %s holds %v of a share of %v", w.now, n.name, held, share)
		}
	}
}

// verify takes all that was admitted from one bucket, in order, and counts what
// was not there.
func (w *world) verify() (violations int) {
	var state bucket.State
	for _, h := range w.record {
		switch {
		case h.canceled:
		case h.kind == reset:
			state = bucket.State{AsOf: state.AsOf}
		case h.kind == refunded:
			state = w.limit.Refund(state, h.at, h.amount)
		default:
			after, snap := w.limit.Take(state, h.at, h.amount)
			if state = after; !snap.Allowed {
				violations++
			}
		}
	}
	return violations
}
