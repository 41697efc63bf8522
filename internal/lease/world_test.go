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

// A world is a set of nodes that share one bucket in a store over a network, in virtual time. Events run one
// after another, with one random seed, so that failures are reproducible.
type world struct {
	t      *testing.T
	r      *rand.Rand
	now    time.Duration // true time, unknown to nodes and store
	events schedule
	number int

	limit  bucket.Limit
	book   leasetest.Book
	offset time.Duration // offset of the store's clock
	chance chances
	refuse bool          // the network rejects loans
	held   time.Duration // it delays loans until then
	nodes  []*node
	began  int // number of nodes so far

	watch func() // called after every event

	record   []happening
	lent     bucket.Tokens // granted by the store
	back     bucket.Tokens // returned to the store
	spent    bucket.Tokens // of these, returned by nodes
	over     bucket.Tokens // expired entries
	unknown  bucket.Tokens // granted, with a lost or late answer
	answered int
	failed   int
}

// chances are the probabilities of faults.
type chances struct {
	loseRequest, loseReply, late float64
	untake                       float64 // another bucket denies a take
}

// A happening is an event as a bucket without leases would see it.
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
	number int // events at one instant run in the order of planning
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

// after schedules do.
func (w *world) after(d time.Duration, do func()) {
	w.number++
	heap.Push(&w.events, event{w.now + max(d, 0), w.number, do})
}

// run advances the time by d.
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

// instant returns the store's clock.
func (w *world) instant() bucket.Instant { return bucket.Instant(1e15).Add(w.now + w.offset) }

// bucketTime returns the bucket's time, which never runs backward.
func (w *world) bucketTime() bucket.Instant { return max(w.instant(), w.book.State.AsOf) }

// settle precedes each operation of the store, and records the entries that end.
func (w *world) settle() {
	now := w.bucketTime()
	for _, e := range w.book.Entries {
		if e.Until <= now {
			w.over += e.Amount
		}
	}
	w.book.Settle(&w.limit, w.instant())
}

// missing returns the spent tokens of the bucket, in its units.
func (w *world) missing() int64 {
	c := w.book.Clone()
	c.Settle(&w.limit, w.instant())
	return c.State.Spent
}

// take takes from the store directly.
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

// step sets the store's clock.
func (w *world) step(d time.Duration) {
	w.offset += d
	w.take(1)
}

// borrow handles a loan that has reached the store.
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

// check asserts the invariants after every event.
func (w *world) check() {
	c := w.book.Clone()
	now := c.Settle(&w.limit, w.instant())
	if c.State.Spent < int64(min(c.Leased(), w.limit.Capacity()))*w.limit.Unit() && !c.Unfloored {
		w.t.Fatalf("%v: %v is lent, and only %d units are missing", w.now, c.Leased(), c.State.Spent)
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

// verify takes all admitted costs from one bucket in order, and counts the excess.
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
