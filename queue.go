// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"encoding/binary"
	"hash/maphash"
	"sync"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// queues are the queues of a Limiter, by the keys that are waited for. There are
// no more of them than there are callers who wait.
type queues struct {
	seed  maphash.Seed
	parts [16]lines
}

// lines are some of the queues.
type lines struct {
	mu      sync.Mutex // guards the fields below, and all in the queues
	queues  map[queueID]*queue
	tickets uint64 // that were given out
}

// A queueID is made of keys: of one that key, of several their encoding.
type queueID struct {
	keys int
	text string
}

// A queue is a list of waiters, of which the first asks the store. It is never
// empty.
type queue struct {
	first, last *waiter

	// What the store said last, to the first or to one before it: enough to tell
	// when those will have their turn who come now. It leaves out what others
	// take meanwhile.
	known  bool
	since  time.Time         // it was asked
	snaps  []bucket.Snapshot // one for each key
	behind []bucket.Tokens   // what the waiters cost that snaps do not show
	few    [2]bucket.Tokens

	unchecked int // waiters that came when nothing was known
}

// maxBehind is the most of a waiter's cost that counts for those behind it, so
// that the costs of eight million waiters can be added up. It makes the estimate
// of a wait too short, never too long.
const maxBehind bucket.Tokens = 1 << 40

// A waiter is a call of [Limiter.Wait]. The fields of the second group are
// guarded by lines.mu.
type waiter struct {
	limiter     *Limiter
	req         *Request
	evaluation  *evaluation
	deadline    time.Time // zero where there is none
	ownDeadline bool      // ctx does not end with it
	lines       *lines
	id          queueID
	costs       []bucket.Tokens // for each key
	few         [2]bucket.Tokens
	sharded     bool          // what the store says of shards is estimated
	leads       bool          // it is the first, and asks the store
	turn        chan struct{} // closed when w is the first, or tooSoon; nil where it is the first at once

	next, prev *waiter
	ticket     uint64
	shown      bool // its cost is in the queue's snaps
	unchecked  bool
	tooSoon    bool // its deadline is before its turn
	left       bool
	missed     time.Duration // by how much
	rule       string        // that makes it so
	reason     string
}

// A role is what a waiter does on arrival.
type role uint8

const (
	first  role = iota // ask the store
	beside             // ask the store: the first is doing so, and nobody waits
	behind             // wait for its turn
	late               // give up: its turn will come too late
)

// queueFor finds w's queue.
func (w *waiter) queueFor(charges []store.Charge) {
	w.id, w.costs = queueID{len(charges), charges[0].Key}, w.few[:0]
	for _, c := range charges {
		w.costs, w.sharded = append(w.costs, c.Cost), w.sharded || c.Shards > 1
	}
	if len(charges) > 1 {
		var text []byte
		for _, c := range charges {
			text = binary.AppendUvarint(text, uint64(len(c.Key)))
			text = append(text, c.Key...)
		}
		w.id.text = string(text)
	}
	q := &w.limiter.queues
	w.lines = &q.parts[maphash.String(q.seed, w.id.text)%uint64(len(q.parts))]
}

// join gives w its place, unless it can ask at once.
func (l *lines) join(w *waiter) role {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tickets++
	w.ticket = l.tickets
	if q := l.queues[w.id]; q != nil && q.first == q.last && !q.known {
		return beside
	}
	return l.place(w)
}

// lineUp gives a waiter its place that was beside.
func (l *lines) lineUp(w *waiter) role {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.place(w)
}

// place puts w behind those who came before it.
func (l *lines) place(w *waiter) role {
	q := l.queues[w.id]
	if q == nil {
		if l.queues == nil {
			l.queues = map[queueID]*queue{}
		}
		q = &queue{first: w, last: w}
		q.behind = append(q.few[:0], w.costs...)
		clear(q.behind)
		l.queues[w.id] = q
		q.add(w, 1)
		return first
	}
	before := q.last
	for before != q.first && before.ticket > w.ticket {
		before = before.prev
	}
	w.unchecked = !q.known && !w.deadline.IsZero()
	if q.known && before == q.last && q.misses(w, q.behind, time.Now()) {
		return late
	}
	if w.unchecked {
		q.unchecked++
	}
	w.turn = make(chan struct{})
	w.prev, w.next = before, before.next
	if before.next = w; w.next != nil {
		w.next.prev = w
	} else {
		q.last = w
	}
	q.add(w, 1)
	return behind
}

// add counts w's cost among those behind, or with sign -1 no more.
func (q *queue) add(w *waiter, sign bucket.Tokens) {
	for i, cost := range w.costs {
		q.behind[i] += sign * min(cost, maxBehind)
	}
}

// misses reports whether w, with so much before it, has its turn after its
// deadline, and if so notes by how much.
func (q *queue) misses(w *waiter, before []bucket.Tokens, now time.Time) bool {
	if w.deadline.IsZero() || w.sharded {
		return false
	}
	left := w.deadline.Sub(now)
	for i := range q.snaps {
		snap := &q.snaps[i]
		missed := snap.Earliest(before[i]+w.costs[i]) - now.Sub(q.since) - left
		if missed <= 0 || missed <= w.missed {
			continue
		}
		w.missed, w.tooSoon = missed, true
		c := w.evaluation.order[i]
		w.rule, w.reason = c.status.Rule.Name, c.status.Limit.Reason
	}
	return w.tooSoon
}

// publish keeps what the store said to the first of a queue, and tells those who
// came meanwhile whether their deadlines can be met.
func (l *lines) publish(w *waiter, asked time.Time, spent bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.queues[w.id]
	q.snaps = q.snaps[:0]
	for _, c := range w.evaluation.order {
		q.snaps = append(q.snaps, c.status.Snapshot)
	}
	if spent && !w.shown {
		w.shown = true
		q.add(w, -1)
	}
	q.known, q.since = true, asked
	if q.unchecked == 0 {
		return
	}
	before, now := append([]bucket.Tokens(nil), q.behind...), time.Now()
	for v := q.last; v != q.first && q.unchecked > 0; {
		for i, cost := range v.costs {
			before[i] -= min(cost, maxBehind)
		}
		ahead := v.prev
		if v.unchecked {
			v.unchecked = false
			if q.unchecked--; q.misses(v, before, now) {
				q.remove(v)
				close(v.turn)
			}
		}
		v = ahead
	}
}

// leave takes w out of its queue, and lets the next be the first if it was that.
func (l *lines) leave(w *waiter, refunded bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.left {
		return
	}
	q := l.queues[w.id]
	wasFirst := q.first == w
	q.remove(w)
	switch {
	case q.first == nil:
		delete(l.queues, w.id)
	case wasFirst:
		if refunded {
			q.known = false
		}
		close(q.first.turn)
	}
}

// forget forgets what the store said of buckets to which w, which has left, gives
// back.
func (l *lines) forget(w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q := l.queues[w.id]; q != nil {
		q.known = false
	}
}

// remove takes w out of the list.
func (q *queue) remove(w *waiter) {
	w.left = true
	if !w.shown {
		q.add(w, -1)
	}
	if w.unchecked {
		w.unchecked = false
		q.unchecked--
	}
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		q.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		q.last = w.prev
	}
	w.next, w.prev = nil, nil
}
