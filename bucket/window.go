// SPDX-License-Identifier: Apache-2.0

package bucket

import "time"

// A window is the state of a sliding window: the costs in the window from start and in the previous one.
// Windows begin at multiples of their length.
type window struct {
	start     Instant
	prev, cur int64
}

const parts = 4096

// windowAt returns the window at now, or at the state's own instant if that is later. The missing amount under
// another limit counts as spent in the window of its instant.
func (l *Limit) windowAt(s *State, now Instant) window {
	w := window{prev: s.Prev, cur: s.Spent - s.Prev, start: s.AsOf}
	if s.Unit != -l.p {
		w = window{cur: min(ceilDiv(s.Spent, max(s.Unit, 1)), int64(l.capacity))}
		w.start = max(s.AsOf, 0) / Instant(l.p) * Instant(l.p)
	}
	now = max(now, s.AsOf)
	if now-w.start < Instant(l.p) { // avoids the division
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

func (w window) missingAt(l *Limit, now Instant) int64 {
	return w.cur + ceilDiv(w.prev*(parts-w.elapsedParts(l, now)), parts)
}

// elapsedParts returns the elapsed share of the window at now, in parts, rounded down.
func (w window) elapsedParts(l *Limit, now Instant) int64 {
	return int64(max(now-w.start, 0)) * parts / l.p
}

// retryAfter returns the wait in microseconds until cost is admitted, or 0 if it is at now. The cost is
// admitted in this window, in the next, or at the start of the one after.
//
// The count at now is prev·(parts − elapsed) + cur·parts.
func (w window) retryAfter(l *Limit, cost Tokens, maxWait time.Duration, now Instant) int64 {
	behind := int64(w.start - now)
	if most := l.capacity + l.debt; maxWait == Forced && cost >= 0 && cost <= most {
		if w.cur+int64(cost) <= int64(most) {
			return 0
		}
		return saturatingAdd(l.p, behind) // the next window is empty
	}
	if cost < 0 || cost > l.capacity {
		return never
	}
	if room := int64(l.capacity-cost) - w.cur; room >= 0 {
		switch first := fadeParts(w.prev, room); {
		case first <= w.elapsedParts(l, now):
			return 0
		case first < parts:
			return saturatingAdd(l.partStart(first), behind)
		}
	}
	if first := fadeParts(w.cur, int64(l.capacity-cost)); first < parts {
		return saturatingAdd(l.p+l.partStart(first), behind)
	}
	return saturatingAdd(2*l.p, behind)
}

// fadeParts returns how far into a window, in parts, the previous window's count prev has faded to room. It
// returns parts if that takes the whole window.
func fadeParts(prev, room int64) int64 {
	if prev == 0 {
		return 0
	}
	return max(parts-room*parts/prev, 0)
}

// partStart returns the first microsecond of a window with this many elapsed parts: ⌈elapsed·p/parts⌉, in
// products below 2^53.
func (l *Limit) partStart(into int64) int64 {
	return into*(l.p/parts) + ceilDiv(into*(l.p%parts), parts)
}

func (l *Limit) spendWindow(s *State, now Instant, cost Tokens, maxWait time.Duration) Verdict {
	w := l.windowAt(s, now)
	if room := int64(l.capacity-cost) - w.cur; cost < 0 || w.prev > room {
		if retry := w.retryAfter(l, cost, maxWait, now); retry > 0 {
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

func (l *Limit) refundWindow(s State, now Instant, amount Tokens) State {
	w := l.windowAt(&s, now)
	back := min(int64(amount), w.cur)
	w.cur -= back
	w.prev -= min(int64(amount)-back, w.prev)
	return w.state(l)
}
