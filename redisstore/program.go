// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// A program is one call of take.lua: what a batch of asks come to, in their order.
type program struct {
	prefix string
	now    int64 // virtual time; -1 is the server's

	groups []group
	asks   []*ask
	places []int // of each ask: its group, or -1

	keys   [3][]string    // rows, logs and others, without their prefixes
	index  map[string]int // of a state's or log's key: its place, and whether it is a log
	latest []int          // the group that last touched a state, or -1
	names  []string
	limits []bucket.Limit
	texts  []limitText // of the limits, and some of earlier calls
	plain  bool

	numbers packed

	was      []bucket.State // states before a plain call
	admitted []int64        // of each operation of a plain call: how many takes are left
}

// A group are plain takes of one bucket at one cost, one after another.
type group struct {
	state int // place among the states
	limit int
	cost  bucket.Tokens
	count int

	operation int // place among the script's operations
}

// Kinds of keys.
const (
	states = iota
	logs
	others
)

func (p *program) reset(prefix string, now int64) {
	p.prefix, p.now, p.plain = prefix, now, true
	p.groups, p.asks, p.places = p.groups[:0], p.asks[:0], p.places[:0]
	for i := range p.keys {
		p.keys[i] = p.keys[i][:0]
	}
	p.latest, p.names, p.limits = p.latest[:0], p.names[:0], p.limits[:0]
	if p.index == nil {
		p.index = map[string]int{}
	}
	clear(p.index)
}

// add adds an ask. It reports false where one of its keys is in the program
// already under an algorithm that is kept in another way: then the ask is
// for the next one.
func (p *program) add(a *ask) bool {
	for i := range a.charges {
		c := &a.charges[i]
		at, known := p.index[c.Key]
		if known && (at < 0) != isLog(&c.Limit) {
			return false
		}
	}
	p.asks = append(p.asks, a)
	p.plain = p.plain && a.plain()
	if a.simple() {
		p.places = append(p.places, p.group(&a.charges[0]))
		return true
	}
	p.places = append(p.places, -1)
	for i := range a.charges {
		if at := p.place(&a.charges[i]); at >= 0 {
			p.latest[at] = -1
		}
	}
	return true
}

// group returns the group that a simple charge joins.
func (p *program) group(c *store.Charge) int {
	at := p.place(c)
	if last := p.latest[at]; last >= 0 {
		if g := &p.groups[last]; g.cost == c.Cost && p.limits[g.limit] == c.Limit {
			g.count++
			return last
		}
	}
	p.latest[at] = len(p.groups)
	p.groups = append(p.groups, group{state: at, limit: p.limit(&c.Limit), cost: c.Cost, count: 1})
	return p.latest[at]
}

// place returns the place of a charge's key among the states, or −1 less its
// place among the logs.
func (p *program) place(c *store.Charge) int {
	if at, ok := p.index[c.Key]; ok {
		return at
	}
	kind := states
	if isLog(&c.Limit) {
		kind = logs
	}
	at := len(p.keys[kind])
	p.keys[kind] = append(p.keys[kind], c.Key)
	if kind == logs {
		at = -1 - at
	} else {
		p.latest = append(p.latest, -1)
	}
	p.index[c.Key] = at
	return at
}

// limit returns the place of a limit, which mostly is one of the last few.
func (p *program) limit(l *bucket.Limit) int {
	const few = 8
	for i := len(p.limits) - 1; i >= max(len(p.limits)-few, 0); i-- {
		if p.limits[i] == *l {
			return i
		}
	}
	p.limits = append(p.limits, *l)
	return len(p.limits) - 1
}

func isLog(l *bucket.Limit) bool { return l.Algorithm() == bucket.SlidingLog }

// size is how many keys the program has, about.
func (p *program) size() int { return len(p.keys[states]) + len(p.keys[logs]) + 2*len(p.asks) }
