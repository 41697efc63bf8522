// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"encoding/binary"
	"strconv"
	"strings"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
)

// The operations of take.lua.
const (
	opSimple = iota + 1
	opTake
	opGiveBack
	opBorrow
)

// Waits of an operation, beside microseconds.
const (
	waitForced = -2
	waitNone   = -1
)

// maxWaitMicros is the longest wait that a script is told: 285 years.
const maxWaitMicros = 1<<53 - 1

// A program is one call of take.lua: what a batch of asks come to, in their order.
type program struct {
	prefix string
	now    int64 // virtual time; -1 is the server's

	groups []group
	asks   []*ask
	places []int // of each ask: its group, or -1

	keys   [3][]string    // states, logs and others, without their prefixes
	index  map[string]int // of a state's or log's key: its place, and whether it is a log
	latest []int          // the group that last touched a state, or -1
	names  []string
	limits []bucket.Limit
	plain  bool

	numbers packed
}

// A group are plain takes of one bucket at one cost, one after another.
type group struct {
	state int // place among the states
	limit int
	cost  bucket.Tokens
	count int
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
func (p *program) group(c *mete.Charge) int {
	at := p.place(c)
	if last := p.latest[at]; last >= 0 {
		if g := &p.groups[last]; g.cost == c.Cost && p.limits[g.limit] == c.Limit {
			g.count++
			return last
		}
	}
	p.latest[at] = len(p.groups)
	p.groups = append(p.groups, group{at, p.limit(&c.Limit), c.Cost, 1})
	return p.latest[at]
}

// place returns the place of a charge's key among the states, or −1 less its
// place among the logs.
func (p *program) place(c *mete.Charge) int {
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

// encode writes the program's numbers and returns its keys and arguments.
func (p *program) encode() (keys, args []string) {
	for _, a := range p.asks { // whatever has limits or keys of its own
		if !a.simple() {
			for i := range a.charges {
				a.limits[i] = p.limit(&a.charges[i].Limit)
			}
		}
	}
	p.numbers.begin()
	p.numbers.add(p.now)
	p.numbers.add(int64(len(p.keys[states])))
	p.numbers.add(int64(len(p.keys[logs])))
	p.numbers.flag(p.plain)
	p.numbers.add(int64(len(p.limits)))
	for i := range p.limits {
		p.encodeLimit(&p.limits[i])
	}
	done := 0 // groups
	for i, a := range p.asks {
		switch at := p.places[i]; {
		case at < 0 && p.plain:
			p.encodePlain(a)
		case at < 0:
			p.encodeAsk(a)
		case at == done:
			p.encodeGroup(&p.groups[at])
			done++
		}
	}
	args = make([]string, 1, 1+len(p.names))
	args[0] = p.numbers.end()
	return p.spell(), append(args, p.names...)
}

func (p *program) encodeLimit(l *bucket.Limit) {
	tokens, per := l.Refill()
	n := int64(tokens)
	if n == 0 { // the zero Limit: it holds nothing
		n, per = 1, 1
	}
	p.numbers.add(int64(l.Algorithm()))
	p.numbers.add(int64(l.Capacity()))
	p.numbers.add(n)
	p.numbers.add(per)
	p.numbers.add(int64(l.MaxReserved()))
	p.numbers.add(l.Start().Microseconds())
	p.numbers.flag(l.Anchor() == bucket.AnchorFirst)
	p.numbers.flag(l.Queued())
}

func (p *program) encodeGroup(g *group) {
	if p.plain {
		p.numbers.add(1) // charge
		p.numbers.add(int64(g.count))
	} else {
		p.numbers.add(opSimple)
	}
	p.numbers.add(int64(g.state) + 1)
	p.numbers.add(int64(g.limit) + 1)
	p.numbers.add(int64(g.cost))
	if !p.plain {
		p.numbers.add(int64(g.count))
	}
}

// encodePlain writes a take of several buckets, once.
func (p *program) encodePlain(a *ask) {
	p.numbers.add(int64(len(a.charges)))
	p.numbers.add(1)
	for i := range a.charges {
		p.numbers.add(int64(p.index[a.charges[i].Key]) + 1)
		p.numbers.add(int64(a.limits[i]) + 1)
		p.numbers.add(int64(a.charges[i].Cost))
	}
}

func (p *program) encodeAsk(a *ask) {
	switch {
	case a.op == opGiveBack:
		p.numbers.add(opGiveBack)
		p.numbers.add(p.other(a.memory))
		p.numbers.add(p.name(a.attempt))
		p.numbers.add(mete.RetryHorizon.Microseconds())
	case a.op == opBorrow:
		p.encodeBorrow(a)
		return
	default:
		p.numbers.add(opTake)
		flags := int64(0)
		if a.mode.DryRun {
			flags |= 1
		}
		if a.mode.UpTo {
			flags |= 2
		}
		p.numbers.add(flags)
		p.numbers.add(waitOf(a.mode.MaxWait))
		p.numbers.add(p.other(a.memory))
	}
	p.numbers.add(int64(len(a.charges)))
	for i := range a.charges {
		c := &a.charges[i]
		p.numbers.add(p.keyNumber(c))
		p.numbers.add(int64(a.limits[i]) + 1)
		p.numbers.add(int64(c.Cost))
		if c.Leased && leasable(&c.Limit) {
			p.numbers.add(p.other(a.leases[i]))
		} else {
			p.numbers.add(0)
		}
	}
	if a.op == opTake && a.memory != "" {
		p.numbers.add(mete.RetryHorizon.Microseconds())
		p.numbers.add(p.name(a.attempt))
		for i := range a.charges {
			p.numbers.add(p.name(a.charges[i].Limit.Encode()))
		}
	}
}

func (p *program) encodeBorrow(a *ask) {
	c := &a.charges[0]
	p.numbers.add(opBorrow)
	p.numbers.add(p.keyNumber(c))
	p.numbers.add(int64(a.limits[0]) + 1)
	p.numbers.add(p.other(a.leases[0]))
	p.numbers.add(p.name(a.loan.Holder))
	p.numbers.add(int64(a.loan.Seq))
	p.numbers.add(int64(a.loan.Spent))
	p.numbers.add(int64(a.loan.Keep))
	p.numbers.add(int64(a.loan.Want))
	p.numbers.add(a.loan.TTL.Microseconds())
}

// keyNumber is the number of a charge's key in the script.
func (p *program) keyNumber(c *mete.Charge) int64 {
	if at := p.index[c.Key]; at < 0 {
		return int64(len(p.keys[states]) - at)
	} else {
		return int64(at) + 1
	}
}

// other is the number of a key that is no state and no log, 0 where it is empty.
func (p *program) other(key string) int64 {
	if key == "" {
		return 0
	}
	p.keys[others] = append(p.keys[others], key)
	return int64(len(p.keys[states]) + len(p.keys[logs]) + len(p.keys[others]))
}

// name is the number of the argument that is text, 0 where it is empty.
func (p *program) name(text string) int64 {
	if text == "" {
		return 0
	}
	p.names = append(p.names, text)
	return int64(len(p.names)) + 1
}

// spell returns all keys as they are in Redis, in one piece of memory.
func (p *program) spell() []string {
	size, n := 0, 0
	for _, keys := range p.keys {
		n += len(keys)
		for _, k := range keys {
			size += len(p.prefix) + len(bucketPrefix) + len(k)
		}
	}
	var all strings.Builder
	all.Grow(size)
	spelled := make([]string, 0, n)
	for kind, keys := range p.keys {
		for _, k := range keys {
			if kind == others {
				spelled = append(spelled, k)
				continue
			}
			start := all.Len()
			all.WriteString(p.prefix)
			all.WriteString(bucketPrefix)
			all.WriteString(k)
			spelled = append(spelled, all.String()[start:])
		}
	}
	return spelled
}

// waitOf is a wait as the script is told.
func waitOf(wait time.Duration) int64 {
	switch {
	case wait == bucket.Forced:
		return waitForced
	case wait == 0:
		return waitNone
	}
	return min(max(wait.Microseconds(), 0), maxWaitMicros)
}

// packed is an array of integers in MessagePack, which Redis unpacks by itself.
type packed struct {
	text  []byte
	count uint32
}

func (p *packed) begin() {
	p.text, p.count = append(p.text[:0], 0xdd, 0, 0, 0, 0), 0
}

func (p *packed) flag(on bool) {
	if on {
		p.add(1)
	} else {
		p.add(0)
	}
}

func (p *packed) add(v int64) {
	p.count++
	switch {
	case v < 0 && v >= -32, v >= 0 && v < 128:
		p.text = append(p.text, byte(v))
	case v >= 0 && v < 1<<16:
		p.text = binary.BigEndian.AppendUint16(append(p.text, 0xcd), uint16(v))
	case v >= 0 && v < 1<<32:
		p.text = binary.BigEndian.AppendUint32(append(p.text, 0xce), uint32(v))
	default:
		p.text = binary.BigEndian.AppendUint64(append(p.text, 0xd3), uint64(v))
	}
}

func (p *packed) end() string {
	binary.BigEndian.PutUint32(p.text[1:], p.count)
	return string(p.text)
}

// errText is an answer that is none.
func errAnswer(what, text string) error {
	return &AnswerError{what + ": " + strconv.Quote(text)}
}

// size is how many keys the program has, about.
func (p *program) size() int { return len(p.keys[states]) + len(p.keys[logs]) + 2*len(p.asks) }
