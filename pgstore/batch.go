// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"github.com/metehq/mete/bucket"
)

// A batch is one call in the making, of one or two statements: one for the plain
// takes, and one for all else. Asks that wait together may be answered in any order,
// but those of one bucket are answered in theirs as far as they are alike.
type batch struct {
	store  *Store
	asks   []*ask
	places []int // of each ask: its group, or -1

	groups []group
	index  map[string]int // of a key: its group

	clock  int64 // virtual time; -1 is the server's
	packet packet

	patience string // how long to wait for a lock, as a setting of PostgreSQL
}

// A group are plain takes of one bucket at one cost.
type group struct {
	key   string
	limit *bucket.Limit // the first ask's
	cost  bucket.Tokens
	count int64

	answer outcome
}

func newBatch(s *Store) *batch {
	return &batch{store: s, index: map[string]int{}}
}

// Reset implements [lane.Batch].
func (b *batch) Reset() {
	clear(b.asks)
	clear(b.groups)
	clear(b.index)
	b.asks, b.places, b.groups = b.asks[:0], b.places[:0], b.groups[:0]
	b.clock = -1
	if now := b.store.config.Now; now != nil {
		b.clock = int64(now())
	}
}

// Asks implements [lane.Batch].
func (b *batch) Asks() []*ask { return b.asks }

// Add implements [lane.Batch]. A plain take that is unlike the ones of its bucket
// goes with all else, and so does one in a transaction of a caller's: there it may wait
// for a lock without end, and the function for all else has locked before it reads the
// clock.
func (b *batch) Add(a *ask) bool {
	b.asks = append(b.asks, a)
	b.places = append(b.places, b.place(a))
	return true
}

func (b *batch) place(a *ask) int {
	if !a.plain() || b.store.joined {
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

// rest appends the asks that are not in a group, or that their group could not
// decide.
func (b *batch) rest(dst []*ask) []*ask {
	for i, a := range b.asks {
		if b.places[i] < 0 || a.again {
			dst = append(dst, a)
		}
	}
	return dst
}
