// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"github.com/metehq/mete/bucket"
)

// A batch is the next call, of one statement for plain takes and one for all other asks. Asks of one batch run in
// any order, but equal asks of one bucket run in the order of arrival.
type batch struct {
	store  *Store
	asks   []*ask
	places []int // the group of each ask, settleable, or -1

	groups []group
	index  map[string]int // the group of each key
	settle settleCall

	clock  int64 // virtual time; -1 selects the server's clock
	packet packet

	lockTimeout string // lock timeout in PostgreSQL's notation
}

type group struct {
	key   string
	limit *bucket.Limit // the first ask's
	cost  bucket.Tokens
	count int64

	answer outcome
}

func newBatch(s *Store) *batch {
	b := &batch{store: s, index: map[string]int{}}
	b.settle.batch = b
	return b
}

func (b *batch) Reset() {
	clear(b.asks)
	clear(b.settle.asks)
	clear(b.settle.limits)
	clear(b.groups)
	clear(b.index)
	b.asks, b.places, b.groups, b.settle.asks = b.asks[:0], b.places[:0], b.groups[:0], b.settle.asks[:0]
	b.clock = -1
	if now := b.store.config.Now; now != nil {
		b.clock = int64(now())
	}
}

func (b *batch) Asks() []*ask { return b.asks }

// Add implements [lane.Batch]. A plain take joins the group of its bucket if limit and cost are equal; other
// takes go into the second statement. So do all takes in a caller's transaction. They can wait long for a lock,
// and only the second statement reads the clock after locking.
func (b *batch) Add(a *ask) bool {
	b.asks = append(b.asks, a)
	place := b.joinGroup(a)
	if place < 0 && !b.store.joined && a.isSettleable() {
		place = settleable
	}
	b.places = append(b.places, place)
	return true
}

// settleable is the place of an ask of a settleCall.
const settleable = -2

func (b *batch) joinGroup(a *ask) int {
	if !a.isPlain() || b.store.joined {
		return -1
	}
	c := &a.charges[0]
	at, known := b.index[c.Key]
	if !known {
		at = len(b.groups)
		b.index[c.Key] = at
		b.groups = append(b.groups, group{key: c.Key, limit: &c.Limit, cost: c.Cost})
	}
	g := &b.groups[at]
	if g.cost != c.Cost || *g.limit != c.Limit {
		return -1
	}
	g.count++
	return at
}

// appendRest appends the asks without a group, and the asks that their group could not decide.
func (b *batch) appendRest(dst []*ask) []*ask {
	for i, a := range b.asks {
		if b.places[i] == -1 || a.retryMixed {
			dst = append(dst, a)
		}
	}
	return dst
}
