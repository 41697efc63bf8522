// SPDX-License-Identifier: Apache-2.0

package bucket

import "slices"

// Taken identifies an admitted take to its cancellation. It comes from
// [Snapshot.Taken], and its instants are those of the store's clock. The zero Taken
// is no take.
type Taken struct {
	Cost  Tokens  // what the take cost
	At    Instant // the bucket's instant, as in [State]
	Spent int64   // what was missing after the take, as in [State]
}

// Taken returns what a cancellation of the take has to know. It is zero where the
// snapshot shows no admitted cost.
func (s Snapshot) Taken() Taken {
	if !s.Allowed || s.Cost <= 0 {
		return Taken{}
	}
	return Taken{Cost: s.Cost, At: s.at, Spent: s.spent}
}

// Undated returns s without the instant of its take. [Limit.Cancel] of such a take
// gives nothing back.
func (s Snapshot) Undated() Snapshot {
	s.at = 0
	return s
}

// Cancel gives back amount of a take at now, as far as that breaks no bound: the
// takes that remain start at most capacity + rate·t in any interval, whatever is
// taken, delayed and canceled in between. It may return less than amount, also
// nothing. An amount of 0 or less changes nothing. A take is canceled once: a second
// call for the same take may exceed the bound.
//
//   - A bucket that owes nothing gets back what has not been refilled since the
//     take: at most cost − refill. Without the take, the bucket may have been full
//     since, and a full bucket loses its refill.
//   - A bucket that owes tokens has promised start times to later work. Only the last
//     take, as a whole, returns its tokens. Any other returns none: its place would be
//     given out twice.
//   - A sliding window gets back what was spent in the window that is current, and
//     a sliding log the entry of the take while the window covers it.
func (l Limit) Cancel(s State, now Instant, amount Tokens, t Taken) State {
	if amount = min(amount, t.Cost); amount <= 0 || s.Spent == 0 {
		return s
	}
	switch l.Algorithm() {
	case SlidingWindow:
		return l.cancelWindow(s, now, amount, t)
	case SlidingLog:
		return l.cancelLog(s, now, amount, t)
	}
	v, unit := l.look(&s, now), l.Unit()
	at := now + Instant(v.behind)
	refilled := l.refilled(at - t.At)
	back := min(int64(amount)*unit, max(int64(t.Cost)*unit-refilled, 0), v.spent)
	if v.spent > int64(l.capacity)*unit {
		if amount < t.Cost || v.spent+refilled != t.Spent {
			return s
		}
		back = min(int64(amount)*unit, v.spent) // a cost above the capacity has refilled in part
	}
	if back <= 0 {
		return s
	}
	return State{Spent: v.spent - back, AsOf: at, Unit: unit}
}

// refilled returns what comes back within so many microseconds, in units of the
// state, at most 2^53 − 1: of a stepped limit, in whole intervals.
func (l *Limit) refilled(us Instant) int64 {
	times := max(int64(us), 0)
	if l.Algorithm() == Stepped {
		times /= l.p
	}
	if l.n > 0 && times > maxUnits/l.n {
		return maxUnits
	}
	return times * l.n
}

// cancelWindow is Cancel for sliding windows: what the window before counts stays.
func (l *Limit) cancelWindow(s State, now Instant, amount Tokens, t Taken) State {
	w := l.slide(&s, now)
	if back := min(int64(amount), w.cur); back > 0 && w.start == t.At {
		w.cur -= back
		return w.state(l)
	}
	return s
}

// cancelLog is Cancel for sliding logs. Entries that have been joined at a later
// instant stay.
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
			s.keep(g, at)
			return s
		}
	}
	return s
}
