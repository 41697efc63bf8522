// SPDX-License-Identifier: Apache-2.0

package bucket

import "slices"

// A Taken identifies an admitted take for its cancellation: see [Snapshot.Taken]. Its instant uses the store's
// clock. The zero Taken identifies no take.
type Taken struct {
	Cost  Tokens  // cost of the take
	At    Instant // the bucket's instant, as in [State]
	Spent int64   // missing amount after the take, as in [State]
}

// Taken returns the identity of the take for a cancellation. It is zero if the snapshot shows no admitted cost.
func (s Snapshot) Taken() Taken {
	if !s.Allowed || s.Cost <= 0 {
		return Taken{}
	}
	return Taken{Cost: s.Cost, At: s.at, Spent: s.spent}
}

// WithoutInstant returns s without the instant of its take. [Limit.Cancel] of such a take refunds nothing.
func (s Snapshot) WithoutInstant() Snapshot {
	s.at = 0
	return s
}

// Cancel refunds up to amount of a take at now without breaking the bound. In any interval of length t, the
// remaining takes start at most capacity + rate·t. It may refund less than amount, or nothing. Cancel each take at
// most once: a second call may exceed the bound.
//
//   - A bucket without debt gets back the part of the cost that has not refilled since the take. A full bucket
//     would have lost that refill without the take.
//   - A bucket in debt has promised start times to later work. Only its last take returns its tokens, and only as a
//     whole. Any other refund would assign the same start time twice.
//   - A sliding window returns costs of the current window. A sliding log returns the take's entry while the window
//     covers it.
func (l Limit) Cancel(s State, now Instant, amount Tokens, t Taken) State {
	if amount = min(amount, t.Cost); amount <= 0 || s.Spent == 0 {
		return s
	}
	switch l.Algorithm() {
	case AlgorithmSlidingWindow:
		return l.cancelWindow(s, now, amount, t)
	case AlgorithmSlidingLog:
		return l.cancelLog(s, now, amount, t)
	}
	v, unit := l.verdictAt(&s, now), l.Unit()
	at := now + Instant(v.behind)
	refilled := l.refillWithin(at - t.At)
	back := min(int64(amount)*unit, max(int64(t.Cost)*unit-refilled, 0), v.spent)
	if v.spent > int64(l.capacity)*unit {
		if amount < t.Cost || v.spent+refilled != t.Spent {
			return s
		}
		back = min(int64(amount)*unit, v.spent) // a cost above the capacity may have refilled in part
	}
	if back <= 0 {
		return s
	}
	return State{Spent: v.spent - back, AsOf: at, Unit: unit}
}

// refillWithin returns the refill within us microseconds, in units of the state and at most 2^53 − 1. A stepped
// limit counts whole intervals.
func (l *Limit) refillWithin(us Instant) int64 {
	times := max(int64(us), 0)
	if l.Algorithm() == AlgorithmStepped {
		times /= l.p
	}
	if l.n > 0 && times > maxUnits/l.n {
		return maxUnits
	}
	return times * l.n
}

// cancelWindow is Cancel for sliding windows. The count of the previous window never changes.
func (l *Limit) cancelWindow(s State, now Instant, amount Tokens, t Taken) State {
	w := l.windowAt(&s, now)
	if back := min(int64(amount), w.cur); back > 0 && w.start == t.At {
		w.cur -= back
		return w.state(l)
	}
	return s
}

// cancelLog is Cancel for sliding logs. Merged entries stay.
func (l *Limit) cancelLog(s State, now Instant, amount Tokens, t Taken) State {
	if s.Log == nil {
		return s
	}
	g := s.Log.clone()
	at := max(now, g.newest())
	g.expire(l, at)
	for i := range g.entries {
		if e := &g.entries[i]; e.At == t.At {
			back := min(amount, e.Cost)
			g.sum -= int64(back)
			if e.Cost -= back; e.Cost == 0 {
				g.entries = slices.Delete(g.entries, i, i+1)
			}
			s.setLog(g, at)
			return s
		}
	}
	return s
}
