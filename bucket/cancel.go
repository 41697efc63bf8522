// SPDX-License-Identifier: Apache-2.0

package bucket

import "slices"

// A Taken identifies an admitted take for its cancellation: see [Snapshot.Taken]. Its instant uses the store's
// clock. The zero Taken identifies no take.
type Taken struct {
	Cost    Tokens  // cost of the take
	At      Instant // the bucket's instant, as in [State]
	Spent   int64   // missing amount after the take, as in [State]
	History int64   // ID of the bucket's [History] if the take is a hold, else 0
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
//   - A bucket without debt gets back at most the least amount that was missing since the take. Without the take,
//     the bucket would have been full when it missed less, and the refill of that time is lost. A bucket with open
//     holds knows this amount from its [History]. Any other bucket misses at least the unrefilled part of the cost.
//   - A bucket in debt has promised start times to later work, which must not be assigned twice. With a history it gets
//     back the amount without the costs of later takes or, if it is more, what the minima allow. Forced costs of later takes
//     are finished work, and do not count there. Without a history only the last take returns its tokens, as a whole.
//   - A sliding window returns costs of the current window. A sliding log returns the take's entry while the window
//     covers it.
//   - A hold returns nothing if the bucket no longer has its history: a reset has already returned its tokens.
func (l Limit) Cancel(s State, now Instant, amount Tokens, t Taken) State {
	if amount = min(amount, t.Cost); amount <= 0 || s.Spent == 0 || !s.hasHistory(t) {
		return s
	}
	switch l.Algorithm() {
	case AlgorithmSlidingWindow:
		after := l.cancelWindow(s, now, amount, t)
		after.History = s.keepHistory(&l, now, 0)
		return after
	case AlgorithmSlidingLog:
		after := l.cancelLog(s, now, amount, t)
		after.History = s.keepHistory(&l, now, 0)
		return after
	case AlgorithmConcurrency:
		return l.Refund(s, now, amount)
	}
	v, unit := l.verdictAt(&s, now), l.Unit()
	at := now + Instant(v.behind)
	asked, cost, refilled := int64(amount)*unit, int64(t.Cost)*unit, l.refillBetween(t.At, at)
	h, inDebt := s.keepHistory(&l, now, v.spent), l.inDebt(v.spent)
	later := v.spent - t.Spent + refilled // the costs of later takes, minus later refunds
	back := int64(0)
	switch {
	case inDebt && (h == nil || h.Epochs[0].Start > t.At):
		if amount == t.Cost && later == 0 {
			back = asked
		}
	case inDebt:
		back = asked - max(later+h.refundsSince(t.At), 0)
	case h == nil:
		back = min(asked, max(cost-refilled, 0))
	}
	if h != nil {
		known := h.Epochs[0].Start <= t.At // and so is the work that waits
		without := h.withdraw(&l, asked, cost, t.At, at, v.spent)
		switch {
		case !inDebt:
			back = without
		case known:
			back = max(back, without)
		}
	}
	if back = min(back, v.spent); back <= 0 {
		return s
	}
	if h != nil {
		h.refunded(back, v.spent-back)
	}
	return State{Spent: v.spent - back, AsOf: at, Unit: unit, History: h}
}

// hasHistory reports whether the state has the history of a hold. It is true for any other take.
func (s *State) hasHistory(t Taken) bool {
	return t.History == 0 || s.History != nil && s.History.ID == t.History
}

// refillBetween returns the refill between two instants of the bucket, in units of the state and at most 2^53 − 1. A
// stepped limit counts whole intervals.
func (l *Limit) refillBetween(from, to Instant) int64 {
	times := max(int64(to-from), 0)
	if l.hasCalendar() {
		times = l.almanac().CountStarts(int64(from), int64(to), maxUnits/l.n+1)
	} else if l.Algorithm() == AlgorithmStepped {
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
