// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"time"

	"github.com/metehq/mete/bucket"
)

// Verdicts of the function take.
const (
	verdictDenied = iota
	verdictTaken
	verdictRemembered
	verdictWindows // the call lacks windows of calendars
)

// readAnswers reads the answer of the function take.
func (g *mixedCall) readAnswers(row [][]byte) error {
	if len(row) != 2 {
		return &AnswerError{"the row does not have two columns"}
	}
	var numbers []int64
	whole := readElements(row[0], func(e []byte) {
		v, _ := readInt(e)
		numbers = append(numbers, v)
	})
	var names []string
	if !readElements(row[1], func(e []byte) { names = append(names, string(e)) }) || !whole {
		return &AnswerError{"a column is not an array"}
	}
	if g.needs = len(numbers) > 0 && numbers[0] == verdictWindows; g.needs {
		return g.learnWindows(numbers, names)
	}
	r := answerReader{numbers, names}
	denied, takes := 0, 0
	for _, a := range g.asks {
		if a.refund {
			continue
		}
		if err := r.readTake(a); err != nil {
			return err
		}
		takes++
		if !a.allowed {
			denied++
		}
	}
	if len(r.numbers) > 0 || len(r.names) > 0 {
		return &AnswerError{"too many values"}
	}
	if takes > 0 {
		g.store.noteDenials(denied, takes)
	}
	return nil
}

// An answerReader holds the unread part of an answer.
type answerReader struct {
	numbers []int64
	names   []string
}

const perCharge = 6 // numbers

// readTake reads the answer to a take.
func (r *answerReader) readTake(a *ask) error {
	size := 2 + perCharge*len(a.charges)
	if len(r.numbers) < size {
		return &AnswerError{"too few values"}
	}
	verdict, at := r.numbers[0], bucket.Instant(r.numbers[1])
	parts := r.numbers[2:size]
	r.numbers = r.numbers[size:]
	remembered := verdict == verdictRemembered
	if remembered && len(r.names) < len(a.charges) {
		return &AnswerError{"the limits of a remembered take are missing"}
	}
	a.allowed, a.snaps = verdict != verdictDenied, a.snaps[:0]
	agree := true
	for i := range a.charges {
		snap, err := a.readCharge(i, [perCharge]int64(parts[perCharge*i:]), at, r, remembered)
		if err != nil {
			return err
		}
		agree = agree && snap.Allowed
		a.snaps = append(a.snaps, snap)
	}
	if remembered {
		r.names = r.names[len(a.charges):]
	} else {
		free, err := r.readPenalties(a)
		if err != nil {
			return err
		}
		agree = agree && free
	}
	if agree != a.allowed {
		a.Err = newMaybeSpent(&AnswerError{"the decision differs"})
	}
	return nil
}

// readCharge reads the answer to the i'th charge.
func (a *ask) readCharge(i int, v [perCharge]int64, at bucket.Instant, r *answerReader, remembered bool) (snap bucket.Snapshot, err error) {
	c := a.charges[i]
	c.Cost = bucket.Tokens(v[0])
	if remembered {
		if c.Limit, err = parseLimit(r.names[i]); err != nil {
			return snap, err
		}
	}
	if v[1] == 2 {
		next, last := time.Duration(v[3])*time.Microsecond, time.Duration(v[4])*time.Microsecond
		bucket.SlotsVerdict(int(v[2]), next, last, waitOf(v[5])).Show(&snap, &c.Limit, min(c.Cost, bucket.Token), at)
		return snap, nil
	}
	if v[1] == 1 {
		parseLogVerdict(v).Show(&snap, &c.Limit, c.Cost, at)
		return snap, nil
	}
	state := bucket.State{Spent: v[2], AsOf: bucket.Instant(v[3]), Unit: c.Limit.Unit(), Prev: v[4]}
	switch {
	case a.mode.ID != "" && a.allowed: // the state is after the take
		snap = c.Limit.Peek(state, at, 0, bucket.Forced)
		snap.Cost, snap.Allowed, snap.RetryAfter = c.Cost, true, 0
	case a.allowed && !a.mode.DryRun:
		_, snap = c.Limit.Reserve(state, at, c.Cost, a.mode.MaxWait)
	default:
		snap = c.Limit.Peek(state, at, c.Cost, a.mode.MaxWait)
	}
	return snap, nil
}

func parseLogVerdict(v [perCharge]int64) bucket.Verdict {
	return bucket.LogVerdict(bucket.Tokens(v[2]), v[3], waitOf(v[4]))
}

// waitOf returns a wait in microseconds as a duration: -1 is never.
func waitOf(us int64) time.Duration {
	if us < 0 {
		return bucket.Never
	}
	return time.Duration(us) * time.Microsecond
}
