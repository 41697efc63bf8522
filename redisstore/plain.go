// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"strconv"

	"github.com/metehq/mete/bucket"
)

// answerPlain reads the states of all buckets as they were, and does over again
// what the script has done to them.
func (p *program) answerPlain(w *words, now bucket.Instant) {
	states, broken := make([]bucket.State, len(p.keys[states])), error(nil)
	for i := range states {
		var err error
		if states[i], err = w.row(); err != nil {
			broken = err
		}
	}
	admitted, done := make([]int64, len(p.groups)), 0
	for i, a := range p.asks {
		at, want := p.places[i], int64(0)
		if at < 0 || at == done {
			var ok bool
			if want, ok = w.int(); !ok {
				broken = errAnswer("no count", "")
			}
		}
		if at == done {
			admitted[at] = want
			done++
		}
		if a.take(p, states, now); at >= 0 {
			want = min(max(admitted[at], 0), 1)
			admitted[at]--
		}
		if broken != nil {
			a.Err = broken
		} else if a.allowed != (want == 1) {
			a.Err = errAnswer("disagrees about a take", strconv.FormatInt(want, 10))
		}
	}
}

// take charges the states of a program as the ask says.
func (a *ask) take(p *program, states []bucket.State, now bucket.Instant) {
	a.allowed, a.snaps = true, a.snaps[:0]
	if len(a.charges) == 1 { // the common case, in one step
		c, snap := &a.charges[0], bucket.Snapshot{}
		state := &states[p.index[c.Key]]
		state.Unit = c.Limit.Unit()
		*state, snap = c.Limit.Take(*state, now, c.Cost)
		a.snaps, a.allowed = append(a.snaps, snap), snap.Allowed
		return
	}
	for i := range a.charges {
		c := &a.charges[i]
		state := &states[p.index[c.Key]]
		state.Unit = c.Limit.Unit()
		a.snaps = append(a.snaps, c.Limit.Peek(*state, now, c.Cost, 0))
		a.allowed = a.allowed && a.snaps[i].Allowed
	}
	for i := range a.charges {
		if c := &a.charges[i]; a.allowed {
			state := &states[p.index[c.Key]]
			*state, a.snaps[i] = c.Limit.Reserve(*state, now, c.Cost, 0)
		}
	}
}
