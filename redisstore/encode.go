// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"crypto/rand"
	"strings"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// The operations of take.lua.
const (
	opSimple = iota + 1
	opTake
	opGiveBack
	opBorrow
	opPenalties // of the next take
	opSettle
	opRenew
)

// plainEven marks a program for which isEven is true, and settles one for which settles is.
const (
	plainEven = 2
	settles   = 3
)

// Special waits of an operation; other values are microseconds.
const (
	waitForced = -2
	waitNone   = -1
)

func (p *program) encode() (keys, args []string) {
	for _, a := range p.asks { // grouped asks have their limits already
		if !a.isSimple() {
			for i := range a.charges {
				a.limits[i] = p.addLimit(&a.charges[i].Limit)
			}
		}
	}
	p.updateLimitTexts()
	p.numbers.begin()
	p.numbers.add(p.now)
	p.numbers.add(int64(len(p.keys[states])))
	p.numbers.add(int64(len(p.keys[logs])))
	if p.isEven() {
		p.encodeEven()
		return p.spellKeys(), []string{p.numbers.end(), p.texts[0].text}
	}
	if p.settles && !p.plain {
		p.numbers.add(settles)
	} else {
		p.numbers.addBool(p.plain)
	}
	var calendars []string
	if p.plain {
		p.numbers.add(int64(len(p.limits)))
		for i := range p.limits {
			p.encodeLimit(&p.limits[i])
		}
	} else {
		calendars = p.encodeCalendars()
		p.numbers.add(int64(len(calendars)))
		p.numbers.add(int64(len(p.keys[held])))
		p.numbers.add(int64(len(p.keys[ended])))
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
	args = make([]string, 1, 1+len(p.limits)+len(p.names)+len(calendars))
	args[0] = p.numbers.end()
	for i := range p.limits {
		args = append(args, p.texts[i].text)
	}
	return p.spellKeys(), append(append(args, p.names...), calendars...)
}

// updateLimitTexts fills p.texts for p.limits. Most calls have the limits of the previous call, so the texts are
// kept.
func (p *program) updateLimitTexts() {
	for i := range p.limits {
		if i == len(p.texts) {
			p.texts = append(p.texts, limitText{})
		}
		if t := &p.texts[i]; t.text == "" || t.limit != p.limits[i] {
			*t = limitText{p.limits[i], formatLimit(&p.limits[i])}
		}
	}
}

// isEven reports whether the program consists of plain takes of one bucket each, with one limit and one cost. State i
// then belongs to group i.
func (p *program) isEven() bool {
	if !p.plain || len(p.limits) != 1 {
		return false
	}
	takes := 0
	for i := range p.groups {
		if p.groups[i].cost != p.groups[0].cost {
			return false
		}
		takes += p.groups[i].count
	}
	return takes == len(p.asks)
}

func (p *program) encodeEven() {
	p.numbers.add(plainEven)
	p.encodeLimit(&p.limits[0])
	p.numbers.add(int64(p.groups[0].cost))
	if len(p.groups) == len(p.asks) {
		return // once each
	}
	for i := range p.groups {
		p.numbers.add(int64(p.groups[i].count))
	}
}

func (p *program) encodeLimit(l *bucket.Limit) {
	n, per := l.Refill()
	p.numbers.add(int64(l.Capacity()))
	p.numbers.add(int64(n))
	p.numbers.add(per)
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

func (p *program) encodePlain(a *ask) {
	p.numbers.add(int64(len(a.charges)))
	p.numbers.add(1)
	for i := range a.charges {
		p.numbers.add(int64(p.index[a.charges[i].Key].at) + 1)
		p.numbers.add(int64(a.limits[i]) + 1)
		p.numbers.add(int64(a.charges[i].Cost))
	}
}

func (p *program) encodeAsk(a *ask) {
	switch {
	case a.op == opGiveBack:
		p.numbers.add(opGiveBack)
		p.numbers.add(p.addOther(a.memory))
		p.numbers.add(p.addName(a.attempt))
		p.numbers.add(store.RetryHorizon.Microseconds())
	case a.op == opBorrow:
		p.encodeBorrow(a)
		return
	case a.op == opSettle, a.op == opRenew:
		p.encodeEnd(a)
		return
	default:
		p.encodePenalties(a)
		p.numbers.add(opTake)
		flags := int64(0)
		if a.mode.DryRun {
			flags |= 1
		}
		if a.mode.UpTo {
			flags |= 2
		}
		if a.hold != nil {
			flags |= 4
		}
		if a.mode.Renew {
			flags |= 8
		}
		if a.awaits() {
			flags |= 16
		}
		p.numbers.add(flags)
		p.numbers.add(encodeWait(a.mode.MaxWait))
		p.numbers.add(p.addOther(a.memory))
	}
	p.numbers.add(int64(len(a.charges)))
	for i := range a.charges {
		c := &a.charges[i]
		p.numbers.add(p.keyNumber(c))
		p.numbers.add(int64(a.limits[i]) + 1)
		p.numbers.add(int64(c.Cost))
		switch {
		case kindOf(&c.Limit) == held:
			p.numbers.add(p.addName(c.Slot.String()))
		case i < len(a.leases):
			p.numbers.add(p.addOther(a.leases[i]))
		default:
			p.numbers.add(0)
		}
		if a.op == opGiveBack {
			p.encodeTaken(a, i)
		}
	}
	if a.op == opTake && a.awaits() {
		p.encodeAwaits(a)
	}
	if a.op == opTake && (a.memory != "" || a.hold != nil) {
		p.numbers.add(store.RetryHorizon.Microseconds())
		p.numbers.add(p.addName(a.attempt))
		for i := range a.charges {
			p.numbers.add(p.addName(a.charges[i].Limit.Encode()))
		}
	}
	if a.op == opTake && a.hold != nil {
		p.encodeHold(a.hold)
	}
}

// encodeAwaits encodes the times for which the charges of a take await their settlement.
func (p *program) encodeAwaits(a *ask) {
	p.numbers.add(p.addName(rand.Text())) // ID for a new history of a bucket
	for i := range a.charges {
		p.numbers.add(max(a.charges[i].Await.Microseconds(), 0))
	}
}

func (p *program) encodeTaken(a *ask, i int) {
	var t bucket.Taken
	if i < len(a.taken) {
		t = a.taken[i]
	}
	if t == (bucket.Taken{}) {
		t.Cost = -1
	}
	p.numbers.add(int64(t.Cost))
	p.numbers.add(int64(t.At))
	p.numbers.add(t.Spent)
}

func (p *program) encodeBorrow(a *ask) {
	c := &a.charges[0]
	p.numbers.add(opBorrow)
	p.numbers.add(p.keyNumber(c))
	p.numbers.add(int64(a.limits[0]) + 1)
	p.numbers.add(p.addOther(a.leases[0]))
	p.numbers.add(p.addName(a.loan.Holder))
	p.numbers.add(int64(a.loan.Seq))
	p.numbers.add(int64(a.loan.Spent))
	p.numbers.add(int64(a.loan.Keep))
	p.numbers.add(int64(a.loan.Want))
	p.numbers.add(a.loan.TTL.Microseconds())
}

func (p *program) keyNumber(c *store.Charge) int64 {
	return p.numberOf(p.index[c.Key])
}

// numberOf returns the number of the key at a place.
func (p *program) numberOf(of place) int64 {
	first := 0
	for kind := range of.kind {
		first += len(p.keys[kind])
	}
	return int64(first+of.at) + 1
}

// addOther adds a key of the last kind, and returns its number; 0 if the key is empty.
func (p *program) addOther(key string) int64 {
	if key == "" {
		return 0
	}
	p.keys[others] = append(p.keys[others], key)
	return p.numberOf(place{others, len(p.keys[others]) - 1})
}

// addName adds text to the arguments and returns its number; 0 if text is empty.
func (p *program) addName(text string) int64 {
	if text == "" {
		return 0
	}
	p.names = append(p.names, text)
	return int64(len(p.limits)+len(p.names)) + 1
}

// spellKeys returns all keys with their prefixes. They share one allocation.
func (p *program) spellKeys() []string {
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
			if kind >= ended {
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

func encodeWait(wait time.Duration) int64 {
	switch {
	case wait == bucket.Forced:
		return waitForced
	case wait == 0:
		return waitNone
	}
	return min(max(wait, 0), bucket.LongestWait).Microseconds()
}
