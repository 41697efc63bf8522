// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"math/bits"
	"time"
)

// A stepped bucket counts thousandths. Its instant is the beginning of an
// interval, where all of an interval's tokens come at once, so that a fraction of
// an interval is never lost. Intervals are half open: who comes at the very
// beginning of one finds its tokens.

// step returns what is missing at now, and the beginning of the interval that
// now, or the state's own instant where that is later, lies in.
//
// A state that was written for other intervals counts from the first beginning
// after it: a change of the limit brings no tokens before their time.
func (l *Limit) step(s *State, now Instant) (spent int64, at Instant) {
	spent, now = s.Spent, max(now, s.AsOf)
	if spent != 0 && s.Unit != 1 {
		spent = min(ceilDiv(spent, max(s.Unit, 1)), int64(l.capacity))
	}
	from := s.AsOf
	if l.Anchor() == AnchorFirst {
		if spent == 0 {
			return 0, now // the interval begins when something is taken
		}
		at = now - (now-from)%Instant(l.p)
	} else {
		if at = l.beginning(now); spent == 0 {
			return 0, at // whenever that was written: it might as well have been forgotten
		}
		if from = l.beginning(from); from < s.AsOf {
			from += Instant(l.p)
		}
		at = max(at, from)
	}
	hi, lo := bits.Mul64(uint64(at-from)/uint64(l.p), uint64(l.n))
	if hi != 0 || lo >= uint64(spent) {
		if l.Anchor() == AnchorFirst {
			at = now
		}
		return 0, at
	}
	return min(spent-int64(lo), int64(l.capacity+l.debt)), at
}

// beginning returns the beginning of the interval that i lies in.
func (l *Limit) beginning(i Instant) Instant {
	into := (int64(i) - l.start()) % l.p
	if into < 0 {
		into += l.p
	}
	return i - Instant(into)
}

// spendStepped is SpendOn for stepped buckets.
func (l *Limit) spendStepped(s *State, now Instant, cost Tokens, maxWait time.Duration) Verdict {
	spent, at := l.step(s, now)
	behind := int64(at - now)
	if room := l.capacity - cost; cost < 0 || room < 0 || spent > int64(room) {
		v := Verdict{spent: spent, behind: behind}
		if v.retry = l.decide(v, cost, maxWait); v.retry > 0 {
			return v
		}
	}
	spent += int64(cost)
	*s = State{Spent: spent, AsOf: at, Unit: 1}
	return Verdict{spent: spent, behind: behind}
}

// retryStepped is [Limit.retry] for stepped buckets. A cost above the capacity
// is never worth a wait: it would depend on how far the next step is.
func (l *Limit) retryStepped(spent int64, cost Tokens, maxWait time.Duration, behind int64) int64 {
	if cost < 0 || l.capacity-cost < -l.debt {
		return never
	}
	room := int64(l.capacity - cost)
	if maxWait == Forced {
		room += int64(l.debt)
		maxWait = 0
	}
	switch {
	case room < 0:
		return never
	case spent <= room:
		return 0
	}
	// The work starts when its tokens are there, which must be within the wait.
	// What is owed until then must be within the debt.
	wait := max(int64(min(maxWait, Longest)/time.Microsecond), 0)
	there, lent := product(ceilDiv(spent-room, l.n), l.p), int64(0)
	if over := spent - room - int64(l.debt); wait > 0 && over > 0 {
		lent = product(ceilDiv(over, l.n), l.p)
	}
	into := int64(0) // how far now is into the interval
	if behind < 0 && behind > -l.p {
		into = -behind
	}
	if lent == 0 && there <= wait+into {
		return 0
	}
	return sum(max(lent, there-wait), behind)
}
