// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"strconv"

	"github.com/metehq/mete/bucket"
)

// readPlainAnswers reads the states of all buckets before the call, and repeats the script's decisions on them.
func (p *program) readPlainAnswers(w *wordReader, now bucket.Instant) {
	broken := p.readRows(w)
	p.countOperations()
	if err := p.readShortfalls(w); err != nil {
		broken = err
	}
	next := 0
	for i, a := range p.asks {
		operation := next
		if at := p.places[i]; at >= 0 {
			operation = p.groups[at].operation
			a.takeOne(&p.was[p.groups[at].state], now)
		} else {
			a.takeAll(p, now)
		}
		if operation == next { // not a later ask of a group
			next++
		}
		left := p.admitted[operation]
		p.admitted[operation]--
		if broken != nil {
			a.Err = broken
		} else if a.allowed != (left > 0) {
			a.Err = newAnswerError("the decision differs", strconv.FormatInt(left, 10))
		}
	}
}

func (p *program) readRows(w *wordReader) (broken error) {
	p.was = p.was[:0]
	for range p.keys[states] {
		state, err := w.nextRow()
		if err != nil {
			broken = err
		}
		p.was = append(p.was, state)
	}
	return broken
}

// countOperations lists the number of takes in each operation of the script, in the order of encode.
func (p *program) countOperations() {
	p.admitted = p.admitted[:0]
	done := 0 // groups
	for _, at := range p.places {
		switch {
		case at < 0:
			p.admitted = append(p.admitted, 1)
		case at == done:
			p.groups[at].operation = len(p.admitted)
			p.admitted = append(p.admitted, int64(p.groups[at].count))
			done++
		}
	}
}

// readShortfalls reads the number of admitted takes, and the operations that admitted fewer takes than requested.
func (p *program) readShortfalls(w *wordReader) error {
	total, ok := w.nextInt()
	if !ok {
		return newAnswerError("invalid count", w.rest)
	}
	for w.rest != "" {
		operation, _ := w.nextInt()
		admitted, ok := w.nextInt()
		if operation < 1 || operation > int64(len(p.admitted)) || !ok || admitted < 0 || admitted >= p.admitted[operation-1] {
			return newAnswerError("invalid count", w.rest)
		}
		p.admitted[operation-1] = admitted
	}
	for _, admitted := range p.admitted {
		total -= admitted
	}
	if total != 0 {
		return newAnswerError("the counts differ from the sum by", strconv.FormatInt(total, 10))
	}
	return nil
}

func (a *ask) takeOne(state *bucket.State, now bucket.Instant) {
	c, snap := &a.charges[0], bucket.Snapshot{}
	state.Unit = c.Limit.Unit()
	*state, snap = c.Limit.Take(*state, now, c.Cost)
	a.snaps, a.allowed = append(a.snaps[:0], snap), snap.Allowed
}

// takeAll charges all buckets of a, or none of them.
func (a *ask) takeAll(p *program, now bucket.Instant) {
	a.allowed, a.snaps = true, a.snaps[:0]
	for i := range a.charges {
		c := &a.charges[i]
		state := &p.was[p.index[c.Key].at]
		state.Unit = c.Limit.Unit()
		a.snaps = append(a.snaps, c.Limit.Peek(*state, now, c.Cost, 0))
		a.allowed = a.allowed && a.snaps[i].Allowed
	}
	for i := range a.charges {
		if c := &a.charges[i]; a.allowed {
			state := &p.was[p.index[c.Key].at]
			*state, a.snaps[i] = c.Limit.Reserve(*state, now, c.Cost, 0)
		}
	}
}
