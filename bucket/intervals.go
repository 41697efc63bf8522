// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"math/bits"
	"time"
)

// A stepped bucket counts thousandths. Its instant is the start of an interval, where all tokens of the
// interval arrive at once, so fractions of an interval are never lost. Intervals are half open: a take at the
// very start of an interval gets its tokens.

// refillStepped returns the missing amount and the start of the interval that contains now, or the state's own
// instant if that is later.
//
// A state of other intervals counts from the first interval that starts after it, so that a new limit adds no
// tokens early.
func (l *Limit) refillStepped(s *State, now Instant) (spent int64, at Instant) {
	if l.hasCalendar() {
		return l.refillCalendar(s, now)
	}
	spent, now = s.Spent, max(now, s.AsOf)
	if spent != 0 && s.Unit != 1 {
		spent = min(ceilDiv(spent, max(s.Unit, 1)), int64(l.capacity))
	}
	from := s.AsOf
	if l.Anchor() == AnchorFirst {
		if spent == 0 {
			return 0, now // the first take starts the interval
		}
		at = now - (now-from)%Instant(l.p)
	} else {
		if at = l.intervalStart(now); spent == 0 {
			return 0, at // a full state may be arbitrarily old
		}
		if from = l.intervalStart(from); from < s.AsOf {
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

func (l *Limit) intervalStart(i Instant) Instant {
	if l.hasCalendar() {
		return Instant(l.almanac().Around(int64(i)).Start)
	}
	into := (int64(i) - l.start()) % l.p
	if into < 0 {
		into += l.p
	}
	return i - Instant(into)
}

func (l *Limit) spendStepped(s *State, now Instant, cost Tokens, maxWait time.Duration) Verdict {
	spent, at := l.refillStepped(s, now)
	behind := int64(at - now)
	if room := l.capacity - cost; cost < 0 || room < 0 || spent > int64(room) {
		v := Verdict{spent: spent, behind: behind}
		if v.retry = l.decide(v, cost, maxWait, now); v.retry > 0 {
			return v
		}
	}
	spent += int64(cost)
	*s = State{Spent: spent, AsOf: at, Unit: 1}
	return Verdict{spent: spent, behind: behind}
}

// retryStepped is [Limit.retryAfter] for stepped buckets. It returns never for a cost above the capacity,
// because the wait would depend on the distance to the next step.
func (l *Limit) retryStepped(v Verdict, cost Tokens, maxWait time.Duration, now Instant) int64 {
	spent, behind := v.spent, v.behind
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
	// The work starts when its tokens arrive, which must be within maxWait. Until then the debt must stay
	// within its limit.
	wait := max(int64(min(maxWait, LongestWait)/time.Microsecond), 0)
	there, lent := ceilDiv(spent-room, l.n), int64(0) // refills
	if over := spent - room - int64(l.debt); wait > 0 && over > 0 {
		lent = ceilDiv(over, l.n)
	}
	if l.hasCalendar() {
		at := now + Instant(behind)
		arrival := l.stepsAfter(at, now, there)
		if lent == 0 && arrival <= wait+max(behind, 0) {
			return 0
		}
		if lent > 0 {
			return max(l.stepsAfter(at, now, lent), arrival-wait)
		}
		return arrival - wait
	}
	there, lent = saturatingMul(there, l.p), saturatingMul(lent, l.p)
	into := int64(0) // time since the start of the interval
	if behind < 0 && behind > -l.p {
		into = -behind
	}
	if lent == 0 && there <= wait+into {
		return 0
	}
	return saturatingAdd(max(lent, there-wait), behind)
}
