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

// read reads a row for a limit. The first that says something was taken counts. Its
// clock was read after the decision, but for where it stands behind the bucket.
func (t *outcome) read(l *bucket.Limit, fields ...[]byte) {
	var v [4]int64
	for i, f := range fields {
		var ok bool
		if v[i], ok = readInt(f); !ok {
			return
		}
	}
	if t.took > 0 {
		return
	}
	took, spent, asOf, now := v[0], v[1], v[2], v[3]
	if took > 0 {
		now = min(now, asOf)
	}
	*t = outcome{took >= 0, bucket.Instant(now), took, bucket.State{Spent: spent, AsOf: bucket.Instant(asOf), Unit: l.Unit()}}
}

// answerPlain answers the asks of the groups in their order, or marks them to be
// asked again.
func (b *batch) answerPlain() {
	denied := 0
	for i := range b.groups {
		g := &b.groups[i]
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
	v.Show(&a.snaps[0], &c.Limit, c.Cost, t.now)
}

func maybeSpent(err error) *mete.StoreError {
	return &mete.StoreError{Store: storeName, Spent: mete.MaybeSpent, Err: err}
}
