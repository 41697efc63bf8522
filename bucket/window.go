// SPDX-License-Identifier: Apache-2.0

package bucket

import "time"

// A window is the state of a sliding window at some instant: what was spent in
// the window that began at start, and in the one before. Windows begin at whole
// multiples of their length.
type window struct {
	start     Instant
	prev, cur int64
}

// parts is how finely the share of the window before is reckoned: in 4096ths.
const parts = 4096

// slide returns the window at now, or at the state's own where that is later.
// What is missing under another limit counts as spent in the window it was
// missing in.
func (l *Limit) slide(s *State, now Instant) window {
	w := window{prev: s.Prev, cur: s.Spent - s.Prev, start: s.AsOf}
	if s.Unit != -l.p {
		w = window{cur: min(ceilDiv(s.Spent, max(s.Unit, 1)), int64(l.capacity))}
		w.start = max(s.AsOf, 0) / Instant(l.p) * Instant(l.p)
	}
	now = max(now, s.AsOf)
	if now-w.start < Instant(l.p) { // the division is worth avoiding
		return w
	}
	switch passed := int64(now-w.start) / l.p; {
	case passed == 1:
		w.start, w.prev, w.cur = w.start+Instant(l.p), w.cur, 0
	case passed > 1:
		w = window{start: now - now%Instant(l.p)}
	}
	return w
}

// missing is what w counts at now, rounded up to a thousandth.
func (w window) missing(l *Limit, now Instant) int64 {
	return w.cur + ceilDiv(w.prev*(parts-w.into(l, now)), parts)
}

// into is how far now is into the window, in parts, rounded down.
func (w window) into(l *Limit, now Instant) int64 {
	return int64(max(now-w.start, 0)) * parts / l.p
}

// retry is 0 where cost is admitted at now, and else the wait until it would be:
// there is one in this window or in the next, or the one after begins with it. The
// wait is in microseconds.
//
// What counts at now is prev·(parts − into) + cur·parts.
func (w window) retry(l *Limit, cost Tokens, maxWait time.Duration, now Instant) int64 {
	behind := int64(w.start - now)
	if most := l.capacity + l.debt; maxWait == Forced && cost >= 0 && cost <= most {
		if w.cur+int64(cost) <= int64(most) {
			return 0
		}
		return sum(l.p, behind) // the next window has nothing in it yet
	}
	if cost < 0 || cost > l.capacity {
		return never
	}
	if room := int64(l.capacity-cost) - w.cur; room >= 0 {
		switch first := fits(w.prev, room); {
		case first <= w.into(l, now):
			return 0
		case first < parts:
			return sum(l.instantOf(first), behind)
		}
	}
	if first := fits(w.cur, int64(l.capacity-cost)); first < parts {
		return sum(l.p+l.instantOf(first), behind)
	}
	return sum(2*l.p, behind)
}

// fits returns how far into a window, in parts, what was spent before it has
// faded to room: parts where that takes all of the window.
func fits(prev, room int64) int64 {
	if prev == 0 {
		return 0
	}
	return max(parts-room*parts/prev, 0)
}

// instantOf returns the first instant that is so many parts into a window:
// ⌈into·p/parts⌉, in products below 2^53.
func (l *Limit) instantOf(into int64) int64 {
	return into*(l.p/parts) + ceilDiv(into*(l.p%parts), parts)
}

// spendWindow is SpendOn for sliding windows.
func (l *Limit) spendWindow(s *State, now Instant, cost Tokens, maxWait time.Duration) Verdict {
	w := l.slide(s, now)
	if room := int64(l.capacity-cost) - w.cur; cost < 0 || w.prev > room {
		if retry := w.retry(l, cost, maxWait, now); retry > 0 {
			v := w.verdict(now)
			v.retry = retry
			return v
		}
	}
	w.cur += int64(cost)
	*s = w.state(l)
	return w.verdict(now)
}

func (w window) verdict(now Instant) Verdict {
	return Verdict{spent: w.cur + w.prev, prev: w.prev, behind: int64(w.start - now)}
}

func (w window) state(l *Limit) State {
	return State{Spent: w.cur + w.prev, AsOf: w.start, Unit: -l.p, Prev: w.prev}
}

// refundWindow is Refund for sliding windows.
func (l *Limit) refundWindow(s State, now Instant, amount Tokens) State {
	w := l.slide(&s, now)
	back := min(int64(amount), w.cur)
	w.cur -= back
	w.prev -= min(int64(amount)-back, w.prev)
	return w.state(l)
}
