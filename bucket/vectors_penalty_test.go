// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/bucket/testdata/vectors"
)

// A twinPenalty is the penalty of one bucket in a vector, by the package and by the oracle.
type twinPenalty struct {
	state  bucket.PenaltyState
	oracle oraclePenalty
}

type twinPenalties []twinPenalty

func obeys(s vectors.Step, c vectors.Charge) bool {
	return c.Penalty != nil && s.MaxWait != bucket.Forced
}

func starts(s vectors.Step) bool { return s.Op == vectors.Take && s.MaxWait == 0 }

// ask starts the oracle's penalty after own, the answer of the bucket itself, and reports whether none is running.
func (p *twinPenalty) ask(s vectors.Step, c vectors.Charge, own answer) bool {
	if !obeys(s, c) {
		return true
	}
	if int64(s.At) >= p.oracle.until && starts(s) && !own.Allowed && c.Cost > 0 && own.RetryAfter != bucket.Never {
		p.oracle.start(c.Penalty, int64(s.At))
	}
	return int64(s.At) >= p.oracle.until
}

// show adds the oracle's penalty to an answer.
func (p *twinPenalty) show(s vectors.Step, c vectors.Charge, a answer) answer {
	left := time.Duration(p.oracle.until-int64(s.At)) * time.Microsecond
	if !obeys(s, c) || left <= 0 {
		return a
	}
	return answer{RetryAfter: max(a.RetryAfter, left), FullAfter: max(a.FullAfter, left)}
}

// apply applies the package's penalty to a snapshot.
func (p *twinPenalty) apply(s vectors.Step, c vectors.Charge, snap *bucket.Snapshot) {
	if !obeys(s, c) {
		return
	}
	if state, started := c.Penalty.Apply(snap, p.state, s.At, starts(s)); started {
		p.state = state
	}
}

// any reports whether a bucket of the step has a penalty.
func (ps twinPenalties) any(s vectors.Step) bool {
	for _, c := range s.Charges {
		if obeys(s, c) {
			return true
		}
	}
	return false
}
