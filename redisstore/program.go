// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/calendars"
	"github.com/metehq/mete/store"
)

// A program is one call of take.lua: a batch of asks in their order.
type program struct {
	prefix string
	now    int64 // virtual time; -1 selects the server's clock

	groups []group
	asks   []*ask
	places []int // the group of each ask, or -1

	keys    [5][]string      // rows, logs, slots, ending holds and others
	index   map[string]place // of a row, log or slot
	latest  []int            // last group of a row, or -1
	names   []string
	limits  []bucket.Limit
	texts   []limitText // of limits, including earlier ones
	plain   bool
	settles bool // each ask is a take or a cancellation of one token bucket: see take_settle.lua

	windows calendars.Call // used if not plain

	numbers packed

	was      []bucket.State // states before a plain call
	admitted []int64        // per operation of a plain call: remaining takes
}

// A group is a run of plain takes from one bucket at one cost.
type group struct {
	state int // position among the rows
	limit int
	cost  bucket.Tokens
	count int

	operation int // position among the script's operations
}

// A place is the kind of a key, and its position among the keys of its kind.
type place struct{ kind, at int }

const (
	states = iota
	logs
	held  // slots
	ended // records of holds that end or are renewed
	others
)

func (p *program) reset(prefix string, now int64) {
	p.prefix, p.now, p.plain, p.settles = prefix, now, true, true
	p.groups, p.asks, p.places = p.groups[:0], p.asks[:0], p.places[:0]
	for i := range p.keys {
		p.keys[i] = p.keys[i][:0]
	}
	p.latest, p.names, p.limits = p.latest[:0], p.names[:0], p.limits[:0]
	if p.index == nil {
		p.index = map[string]place{}
	}
	clear(p.index)
	p.windows.Reset(0)
}

// add adds an ask. It returns false if p already uses one of the ask's keys with a different layout. The ask then
// belongs in the next program.
func (p *program) add(a *ask) bool {
	for i := range a.charges {
		c := &a.charges[i]
		at, known := p.index[c.Key]
		if known && at.kind != kindOf(&c.Limit) {
			return false
		}
	}
	p.asks = append(p.asks, a)
	p.plain = p.plain && a.isPlain()
	p.settles = p.settles && a.isSettleable()
	if a.op == opSettle || a.op == opRenew {
		a.hold.position = len(p.keys[ended])
		p.keys[ended] = append(p.keys[ended], a.hold.record)
	}
	if a.isSimple() {
		p.places = append(p.places, p.joinGroup(&a.charges[0]))
		return true
	}
	p.places = append(p.places, -1)
	for i := range a.charges {
		if added := p.addKey(&a.charges[i]); added.kind == states {
			p.latest[added.at] = -1
		}
	}
	return true
}

func (p *program) joinGroup(c *store.Charge) int {
	at := p.addKey(c).at
	if last := p.latest[at]; last >= 0 {
		if g := &p.groups[last]; g.cost == c.Cost && p.limits[g.limit] == c.Limit {
			g.count++
			return last
		}
	}
	p.latest[at] = len(p.groups)
	p.groups = append(p.groups, group{state: at, limit: p.addLimit(&c.Limit), cost: c.Cost, count: 1})
	return p.latest[at]
}

func (p *program) addKey(c *store.Charge) place {
	if known, ok := p.index[c.Key]; ok {
		return known
	}
	kind := kindOf(&c.Limit)
	added := place{kind, len(p.keys[kind])}
	p.keys[kind] = append(p.keys[kind], c.Key)
	if kind == states {
		p.latest = append(p.latest, -1)
	}
	p.index[c.Key] = added
	return added
}

// addLimit returns the position of a limit. Most limits are among the last few.
func (p *program) addLimit(l *bucket.Limit) int {
	const few = 8
	for i := len(p.limits) - 1; i >= max(len(p.limits)-few, 0); i-- {
		if p.limits[i] == *l {
			return i
		}
	}
	p.limits = append(p.limits, *l)
	return len(p.limits) - 1
}

// kindOf returns the kind of a bucket's key.
func kindOf(l *bucket.Limit) int {
	switch l.Algorithm() {
	case bucket.AlgorithmSlidingLog:
		return logs
	case bucket.AlgorithmConcurrency:
		return held
	}
	return states
}

func (p *program) size() int {
	return len(p.keys[states]) + len(p.keys[logs]) + len(p.keys[held]) + 2*len(p.asks)
}
