// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
)

// An AnswerError reports that the answer of a function in the database is malformed, or that its decision differs
// from the decision of package bucket.
type AnswerError struct{ what string }

func (e *AnswerError) Error() string { return "unexpected answer from the database: " + e.what }

type outcome struct {
	answered bool // the database answered
	now      bucket.Instant
	took     int64
	state    bucket.State
}

// readRow reads a row for a limit. Only the first row with a charge counts. The clock is read after the decision, so
// it is capped by the state's time.
func (t *outcome) readRow(l *bucket.Limit, fields ...[]byte) {
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

// replayGroups answers the asks of the groups in their order. Asks without an answer are marked for a retry.
func (b *batch) replayGroups() {
	denied := 0
	for i := range b.groups {
		g := &b.groups[i]
		if g.answer.took == 0 {
			denied++
		}
		g.answer.state.Spent -= g.answer.took
	}
	b.store.noteDenials(denied, len(b.groups))
	for i, a := range b.asks {
		if at := b.places[i]; at >= 0 {
			b.groups[at].answer.replay(a)
		}
	}
}

func (t *outcome) replay(a *ask) {
	if a.retryMixed = !t.answered; a.retryMixed {
		return
	}
	c := &a.charges[0]
	_, p := c.Limit.Refill()
	state, v := c.Limit.Spend(t.state, t.now, c.Cost, 0)
	a.allowed = v.Allowed()
	if a.allowed != (t.took > 0) {
		a.Err = newMaybeSpent(&AnswerError{"the decision differs"})
		return
	}
	if a.allowed {
		t.state, t.took = state, t.took-int64(c.Cost)*p
	}
	a.snaps = append(a.snaps[:0], bucket.Snapshot{})
	v.Show(&a.snaps[0], &c.Limit, c.Cost, t.now)
}

func newMaybeSpent(err error) *mete.StoreError {
	return &mete.StoreError{Store: storeName, Spent: mete.MaybeSpent, Err: err}
}
