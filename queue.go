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

// queues holds the queues of a Limiter by their keys. There are never more queues than waiting callers.
type queues struct {
	seed   maphash.Seed
	shards [16]queueShard
}

// A queueShard holds some of the queues.
type queueShard struct {
	mu      sync.Mutex // guards the fields below and the queues' contents
	queues  map[queueID]*queue
	tickets uint64 // issued so far
}

// A queueID identifies a set of keys: the key itself for one key, an encoding for several.
type queueID struct {
	keys int
	text string
}

// A queue is a list of waiters. Only the first one calls the store. A queue is never empty.
type queue struct {
	first, last *waiter

	// The store's last answer to a first waiter, from which a new waiter's turn is estimated. It does not
	// include later takes by callers outside of the queue.
	known  bool
	since  time.Time         // time of the call
	snaps  []bucket.Snapshot // one per key
	behind []bucket.Tokens   // costs of the waiters that snaps do not include, per key
	few    [2]bucket.Tokens

	unchecked int // waiters that arrived before the first answer
}

// maxBehind bounds the counted part of a waiter's cost, so that the costs of eight million waiters add up
// without overflow. It can make an estimated wait too short, but never too long.
const maxBehind bucket.Tokens = 1 << 40

// A waiter is a call of [Limiter.Wait]. The shard's mu guards the second group of fields.
type waiter struct {
	limiter     *Limiter
	req         *Request
	evaluation  *evaluation
	deadline    time.Time // zero if there is none
	ownDeadline bool      // earlier than the deadline of ctx
	shard       *queueShard
	id          queueID
	costs       []bucket.Tokens // per key
	few         [2]bucket.Tokens
	sharded     bool          // snapshots of shards are estimates
	leads       bool          // first of its queue, calls the store.
	turn        chan struct{} // closed when w becomes first or tooSoon; nil if w was first on arrival.

	next, prev *waiter
	ticket     uint64
	shown      bool // the queue's snaps include its cost
	unchecked  bool
	tooSoon    bool // its deadline ends before its turn
	left       bool
	missed     time.Duration // how long after its deadline the turn comes
	rule       string        // the rule that causes the wait
	reason     string
}

// A role is a waiter's task on arrival.
type role uint8

const (
	roleLead   role = iota // call the store as the first of the queue.
	roleProbe              // call the store alongside the first, because no other caller waits.
	roleWait               // wait for the turn
	roleGiveUp             // give up: its turn will come too late
)

func (w *waiter) setQueue(charges []store.Charge) {
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
	w.shard = &q.shards[maphash.String(q.seed, w.id.text)%uint64(len(q.shards))]
}

// join inserts w into its queue, unless w may probe the store immediately.
func (l *queueShard) join(w *waiter) role {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tickets++
	w.ticket = l.tickets
	if q := l.queues[w.id]; q != nil && q.first == q.last && !q.known {
		return roleProbe
	}
	return l.insert(w)
}

// enqueue inserts a waiter after an unsuccessful probe.
func (l *queueShard) enqueue(w *waiter) role {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.insert(w)
}

func (l *queueShard) insert(w *waiter) role {
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
		return roleLead
	}
	before := q.last
	for before != q.first && before.ticket > w.ticket {
		before = before.prev
	}
	w.unchecked = !q.known && !w.deadline.IsZero()
	if q.known && before == q.last && q.missesDeadline(w, q.behind, time.Now()) {
		return roleGiveUp
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
	return roleWait
}

func (q *queue) add(w *waiter, sign bucket.Tokens) {
	for i, cost := range w.costs {
		q.behind[i] += sign * min(cost, maxBehind)
	}
}

// missesDeadline reports whether w gets its turn after its deadline, given the costs before it. It records the
// difference.
func (q *queue) missesDeadline(w *waiter, before []bucket.Tokens, now time.Time) bool {
	if w.deadline.IsZero() || w.sharded {
		return false
	}
	left := w.deadline.Sub(now)
	for i := range q.snaps {
		snap := &q.snaps[i]
		missed := snap.RefillAfter(before[i]+w.costs[i]) - now.Sub(q.since) - left
		if missed <= 0 || missed <= w.missed {
			continue
		}
		w.missed, w.tooSoon = missed, true
		c := w.evaluation.order[i]
		w.rule, w.reason = c.status.Rule.Name, c.status.Limit.Reason
	}
	return w.tooSoon
}

// publish stores the answer that the first waiter got, and wakes newer waiters that cannot meet their deadlines.
func (l *queueShard) publish(w *waiter, asked time.Time, spent bool) {
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
			if q.unchecked--; q.missesDeadline(v, before, now) {
				q.remove(v)
				close(v.turn)
			}
		}
		v = ahead
	}
}

// leave removes w from its queue. If w was first, the next waiter becomes first.
func (l *queueShard) leave(w *waiter, refunded bool) {
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

// invalidate discards the queue's last store answer, because w refunds its cost after leaving.
func (l *queueShard) invalidate(w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q := l.queues[w.id]; q != nil {
		q.known = false
	}
}

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
