// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"slices"
	"time"
)

// Holds returns the number of open holds of l's account at now. It counts an expired hold that was not settled until
// its epoch ends. A store refuses a hold of a bucket with [MaxHolds].
func (r Row) Holds(l *Limit, now Instant) int64 {
	i := r.find(l)
	if i < 0 {
		return 0
	}
	s := &r[i].State
	if !s.needsHistory(l, now, l.verdictAt(s, now).spent) {
		return 0
	}
	h := *s.History
	h.prune(max(now, s.AsOf)) // changes no epoch: there are at most MaxEpochs
	return h.holds()
}

// WithHold returns the row after an admitted take becomes a hold at now: l's account keeps a [History]. The hold
// expires at until. If refund is true, the store then cancels the take: see [Row.Due]. A new history gets the ID
// t.History. WithHold also returns t with the ID of the account's history.
func (r Row) WithHold(l *Limit, now Instant, t Taken, until Instant, refund bool) (Row, Taken) {
	row := r.changeHistory(l, now, func(s *State, h *History) *History {
		h, t = h.withHold(l, s, now, t, until, refund)
		return h
	})
	return row, t
}

// HoldOn is [Row.WithHold] in place, after [Limit.SpendOn] has spent the cost: it changes s and its history.
func (l *Limit) HoldOn(s *State, now Instant, t Taken, until Instant, refund bool) Taken {
	if l.n != 0 {
		s.History, t = s.History.withHold(l, s, now, t, until, refund)
	}
	return t
}

func (h *History) withHold(l *Limit, s *State, now Instant, t Taken, until Instant, refund bool) (*History, Taken) {
	h = h.orNew(l, s, t)
	t.History = h.ID
	h.extend(t.At, until, s.AsOf, refund)
	h.begin(l, t.At, s.Spent, 1)
	h.prune(max(now, s.AsOf))
	return h, t
}

// WithAwait returns the row after an admitted take at now. The caller will cancel a part of the take within about this time.
// l's account then keeps a [History], with epochs that fit this time. A cancellation after this time returns less. A new
// history gets the ID t.History. The first take from a full bucket needs none: the rule without a history is exact as long as
// no other take follows. WithAwait returns r for other limits than token buckets with continuous refill.
func (r Row) WithAwait(l *Limit, now Instant, t Taken, await time.Duration) Row {
	us := await.Microseconds()
	if us <= 0 || l.Algorithm() != AlgorithmContinuous {
		return r
	}
	return r.changeHistory(l, now, func(s *State, h *History) *History { return h.withAwait(l, s, now, t, us) })
}

// AwaitOn is [Row.WithAwait] in place, after [Limit.SpendOn] has spent the cost: it changes s and its history.
func (l *Limit) AwaitOn(s *State, now Instant, t Taken, await time.Duration) {
	if us := await.Microseconds(); us > 0 && l.Algorithm() == AlgorithmContinuous && l.n != 0 {
		s.History = s.History.withAwait(l, s, now, t, us)
	}
}

func (h *History) withAwait(l *Limit, s *State, now Instant, t Taken, us int64) *History {
	if h == nil && s.Spent <= int64(t.Cost)*l.Unit() {
		return nil
	}
	h = h.orNew(l, s, t)
	h.await(l, t.At, t.At+Instant(us), s.Spent)
	h.prune(max(now, s.AsOf))
	return h
}

// orNew returns h, or a new history that begins with the take t if h is nil. While the bucket is in debt it begins behind
// t, because it does not know which takes of the same instant wait.
func (h *History) orNew(l *Limit, s *State, t Taken) *History {
	if h != nil {
		return h
	}
	first := Epoch{Start: t.At, Least: s.Spent, Later: maxUnits}
	if l.inDebt(s.Spent) {
		first.Start++
	}
	return &History{ID: t.History, Epochs: []Epoch{first}}
}

// WithRenewal returns the row after the hold of t gets a new expiry at now. It changes nothing if the row no longer has the
// hold's history.
func (r Row) WithRenewal(l *Limit, now Instant, t Taken, until Instant, refund bool) Row {
	return r.changeHistory(l, now, func(s *State, h *History) *History {
		if h != nil && h.ID == t.History {
			h.extend(t.At, until, s.AsOf, refund)
		}
		return h
	})
}

// WithoutHold returns the row after the hold of t has ended. It changes nothing if the row no longer has the hold's history.
func (r Row) WithoutHold(l *Limit, now Instant, t Taken) Row {
	return r.changeHistory(l, now, func(_ *State, h *History) *History {
		if h != nil && h.ID == t.History {
			h.close(t.At)
		}
		return h
	})
}

// WithSettlement is [Row.Cancel] of amount and [Row.WithoutHold] in one step.
func (r Row) WithSettlement(l *Limit, now Instant, amount Tokens, t Taken) Row {
	i := r.find(l)
	if i < 0 {
		return r
	}
	row := slices.Clone(r)
	s := &row[i].State
	before := s.History
	*s = l.Cancel(*s, now, amount, t)
	if s.History == before && before != nil { // else Cancel has copied or dropped it
		s.History = s.keepHistory(l, now, l.verdictAt(s, now).spent)
	}
	if h := s.History; h != nil && h.ID == t.History {
		h.close(t.At)
	}
	return row
}

// HasHistory reports whether l's account still has the history of the hold of t. Otherwise the bucket was reset, and the
// hold returns nothing.
func (r Row) HasHistory(l *Limit, t Taken) bool {
	i := r.find(l)
	return i >= 0 && r[i].State.hasHistory(t)
}

// Due returns the first instant at which a hold of any account is refunded because it expires, or 0. From then on,
// the store cancels these takes before any other operation on the row. It cancels each take at its expiry, in the order of
// expiries and then of the hashes of the IDs, and then calls [Row.WithDue].
func (r Row) Due() (first Instant) {
	for i := range r {
		if h := r[i].State.History; h != nil && h.Due != 0 && (first == 0 || h.Due < first) {
			first = h.Due
		}
	}
	return first
}

// WithDue returns the row with the next instant for [Row.Due] of l's account.
func (r Row) WithDue(l *Limit, due Instant) Row {
	i := r.find(l)
	if i < 0 || r[i].State.History == nil {
		return r
	}
	row, h := slices.Clone(r), *r[i].State.History
	h.Due = due
	row[i].State.History = &h
	return row
}

// HeldUntil returns the last expiry of the holds of all accounts, or 0. A store keeps the row until then, so that it
// counts the holds.
func (r Row) HeldUntil() (last Instant) {
	for i := range r {
		if h := r[i].State.History; h != nil {
			last = max(last, h.Until)
		}
	}
	return last
}

func (r Row) changeHistory(l *Limit, now Instant, change func(*State, *History) *History) Row {
	i := r.find(l)
	if i < 0 || l.n == 0 {
		return r
	}
	row := slices.Clone(r)
	s := &row[i].State
	s.History = change(s, s.keepHistory(l, now, l.verdictAt(s, now).spent))
	return row
}
