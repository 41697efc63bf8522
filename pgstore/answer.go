// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
)

// An AnswerError says that a function in the database answered what it never
// should: that the answer is no answer, or that it decided otherwise than package
// bucket does.
type AnswerError struct{ what string }

func (e *AnswerError) Error() string { return "unexpected answer of the database: " + e.what }

// An outcome is the answer to a group: how much was taken, and the state after that.
type outcome struct {
	there bool // there was an answer
	now   bucket.Instant
	took  int64
	state bucket.State
}

// read reads a row. The first that says something was taken counts.
func (t *outcome) read(fields ...[]byte) {
	var v [5]int64
	for i, f := range fields {
		var ok bool
		if v[i], ok = readInt(f); !ok {
			return
		}
	}
	if t.took > 0 {
		return
	}
	*t = outcome{true, bucket.Instant(v[0]), v[1], bucket.State{Spent: v[2], AsOf: bucket.Instant(v[3]), Unit: v[4]}}
}

// admitted reads the row of a take that was admitted alone. The clock was read after
// the decision, but for where it stands behind the bucket.
func (t *outcome) admitted(r *rate, clock, spent, asOf []byte) {
	now, ok := readInt(clock)
	s, ok2 := readInt(spent)
	at, ok3 := readInt(asOf)
	if ok && ok2 && ok3 {
		*t = outcome{true, bucket.Instant(min(now, at)), r.cost, bucket.State{Spent: s, AsOf: bucket.Instant(at), Unit: r.p}}
	}
}

// answerPlain answers the asks of the groups in their order, or marks them to be
// asked again.
func (b *batch) answerPlain() {
	denied := 0
	for i := range b.groups {
		g := &b.groups[i]
		_, p := g.limit.Refill()
		g.answer.there = g.answer.there && g.answer.took >= 0 && g.answer.state.Unit == p
		if g.answer.took == 0 {
			denied++
		}
		g.answer.state.Spent -= g.answer.took
	}
	b.store.learn(denied, len(b.groups))
	for i, a := range b.asks {
		if at := b.places[i]; at >= 0 {
			b.groups[at].answer.answer(a)
		}
	}
}

// answer does over again what was done, for one of the takes.
func (t *outcome) answer(a *ask) {
	if a.again = !t.there; a.again {
		return
	}
	c := &a.charges[0]
	_, p := c.Limit.Refill()
	state, v := c.Limit.Spend(t.state, t.now, c.Cost, 0)
	a.allowed = v.Allowed()
	if a.allowed != (t.took > 0) {
		a.Err = maybeSpent(&AnswerError{"disagrees about a take"})
		return
	}
	if a.allowed {
		t.state, t.took = state, t.took-int64(c.Cost)*p
	}
	a.snaps = append(a.snaps[:0], bucket.Snapshot{})
	v.Show(&a.snaps[0], &c.Limit, c.Cost)
}

func maybeSpent(err error) *mete.StoreError {
	return &mete.StoreError{Store: storeName, Spent: mete.MaybeSpent, Err: err}
}
