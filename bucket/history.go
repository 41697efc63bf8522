// SPDX-License-Identifier: Apache-2.0

package bucket

import "time"

const (
	// MaxHolds bounds the open holds of one bucket: see [Row.Holds].
	MaxHolds = 10_000

	// MaxEpochs bounds the epochs of a [History].
	MaxEpochs = 8
)

// A History belongs to a bucket with open holds, or with takes that await a settlement: see [Row.WithAwait]. It has the
// least missing amount of each epoch for cancellations, and the number of holds. An epoch begins with a hold or such a
// take, and lasts at least a seventh of the longest of them.
// Sliding limits need no amounts. A History does not change once a [State] has it.
//
// A hold returns tokens only to the history with its ID. A reset drops the history together with the row, and has then
// returned the tokens of its holds. Any other loss of a history is safe, too: the bucket gets back less.
type History struct {
	ID      int64   // above 0; of no earlier history of the bucket
	Until   Instant // the history is not needed from then on: the last expiry of any hold or await, and the last start of waiting work
	Longest int64   // the longest time from a take to its expiry, in microseconds; without holds, how long the last take awaits
	Due     Instant // the first expiry of a hold that is refunded when it expires, or 0
	Epochs  []Epoch // at most MaxEpochs, oldest first
}

// An Epoch ends at the start of the next epoch.
type Epoch struct {
	Start Instant
	Least int64 // the least missing amount since Start, in the units of State.Spent
	Later int64 // the least amount that will be missing before waiting work starts, or 2^53 − 1
	Back  int64 // refunds in the epoch, in the same units
	Holds int64 // holds that were opened in the epoch and not settled; some may have expired
}

// keepHistory returns a copy of the history at now, when spent is missing. It is nil if all holds have expired and the bucket
// has no debt, or if the state counts in the units of another limit. Refunds of a bucket in debt are needed as long as
// the debt lasts: see [Limit.Cancel].
func (s *State) keepHistory(l *Limit, now Instant, spent int64) *History {
	if !s.needsHistory(l, now, spent) {
		return nil
	}
	var c struct {
		History
		space [MaxEpochs + 1]Epoch // in the same allocation
	}
	c.History = *s.History
	c.Epochs = append(c.space[:0], c.Epochs...)
	return &c.History
}

func (s *State) needsHistory(l *Limit, now Instant, spent int64) bool {
	h := s.History
	return h != nil && s.Unit == l.Unit() && l.n != 0 && (max(now, s.AsOf) < h.Until || h.Due != 0 || l.inDebt(spent))
}

// inDebt reports whether a bucket that misses spent is in debt.
func (l *Limit) inDebt(spent int64) bool {
	return l.Algorithm() <= AlgorithmStepped && spent > int64(l.capacity)*l.Unit()
}

// note records that least was missing at some instant of the current epoch.
func (h *History) note(least int64) {
	e := &h.Epochs[len(h.Epochs)-1]
	e.Least = min(e.Least, least)
}

// refunded records a refund that leaves spent missing.
func (h *History) refunded(back, spent int64) {
	h.note(spent)
	e := &h.Epochs[len(h.Epochs)-1]
	e.Back = min(e.Back+back, maxUnits)
}

// refundsSince returns the refunds since the start of the epoch of t, at most 2^53 − 1.
func (h *History) refundsSince(t Instant) (sum int64) {
	for i := len(h.Epochs) - 1; i >= 0; i-- {
		if sum = min(sum+h.Epochs[i].Back, maxUnits); h.Epochs[i].Start <= t {
			break
		}
	}
	return sum
}

// spendHeld is Spend for a bucket with a history.
func (l *Limit) spendHeld(s State, now Instant, cost Tokens, maxWait time.Duration) (State, Verdict) {
	before := l.verdictAt(&s, now)
	h := s.keepHistory(l, now, before.spent)
	plain := s
	plain.History = nil
	after, v := l.Spend(plain, now, cost, maxWait)
	if !v.Allowed() {
		return s, v
	}
	if h != nil && l.Algorithm() <= AlgorithmStepped {
		h.note(before.spent)
		h.noteWait(l, v.spent, cost, maxWait, after.AsOf)
	}
	after.History = h
	return after, v
}

// noteWait records the amount that will be missing before the work of a take starts. Work has to wait while the bucket
// is in debt. By its start, everything but its own cost has refilled. A forced cost is finished work, which waits for
// nothing. spent is missing after the take, at the instant at. A cancellation may end the debt before the work starts, so the
// history lasts until then. With a calendar it does not, because stores do not know all windows until the start.
func (h *History) noteWait(l *Limit, spent int64, cost Tokens, maxWait time.Duration, at Instant) {
	debt := spent - int64(l.capacity)*l.Unit()
	if debt <= 0 || maxWait == Forced {
		return
	}
	surplus := (l.n - debt%l.n) % l.n // of the last refill before the start, above the debt
	e := &h.Epochs[len(h.Epochs)-1]
	e.Later = min(e.Later, max(int64(l.capacity-cost)*l.Unit()-surplus, 0))
	if l.hasCalendar() {
		return
	}
	wait := ceilDiv(debt, l.n)
	if l.Algorithm() == AlgorithmStepped {
		wait *= l.p
	}
	h.Until = max(h.Until, at+Instant(wait))
}

// withdraw removes back from a take of cost at the instant t, and lowers the minima as in a bucket without it. It
// returns the part that this other bucket would still have at the instant at. The other bucket was full at times, and
// loses the refill of these times. spent is missing at the instant at. All amounts are in units of the state.
//
// The minimum of an epoch may be older than a take that has lowered it, and is then too low for earlier takes. The part of the
// cost that has not refilled has been missing from the bucket since the take, so at least this part returns.
func (h *History) withdraw(l *Limit, back, cost int64, t, at Instant, spent int64) int64 {
	first := 0
	for first+1 < len(h.Epochs) && h.Epochs[first+1].Start <= t {
		first++
	}
	left := max(cost-l.refillBetween(t, at), 0)
	own, known := min(back, left), int64(maxUnits)
	if h.Epochs[first].Start > t { // the history began later
		known = left
	}
	for i := first; i < len(h.Epochs); i++ {
		e := &h.Epochs[i]
		least, end := e.Least, at
		if i+1 < len(h.Epochs) {
			end = h.Epochs[i+1].Start
		} else {
			least = min(least, spent)
		}
		later := e.Later
		if e.Least = max(least-back, 0); later < maxUnits {
			e.Later = max(later-back, 0)
		}
		if i == first && e.Start <= t { // the minimum may be older than the take
			least = max(least, cost-l.refillBetween(t, end))
		}
		back = min(max(min(back, least), own), later)
		own = min(own, later)
	}
	return min(back, known)
}

// await records a take at the instant at that awaits its cancellation, where spent is missing after the take.
func (h *History) await(l *Limit, at, until Instant, spent int64) {
	h.Until = max(h.Until, until)
	if wait := int64(until - at); wait > h.Longest || h.holds() == 0 {
		h.Longest = wait
	}
	h.begin(l, at, spent, 0)
}

// begin adds holds to the last epoch, or begins a new one if the last is long enough. In a bucket in debt, the last epoch
// knows which takes wait, and some may be of the instant at.
func (h *History) begin(l *Limit, at Instant, spent, holds int64) {
	last := &h.Epochs[len(h.Epochs)-1]
	if last.Start >= at || int64(at-last.Start) < ceilDiv(h.Longest, MaxEpochs-1) {
		last.Least = min(last.Least, spent)
		last.Holds += holds
		return
	}
	next := Epoch{Start: at, Least: spent, Later: maxUnits, Holds: holds}
	if l.inDebt(spent) {
		next.Later = last.Later
	}
	h.Epochs = append(h.Epochs, next)
}

func (h *History) holds() (sum int64) {
	for i := range h.Epochs {
		sum += h.Epochs[i].Holds
	}
	return sum
}

// extend records the expiry of a hold that was taken at the instant t. After a step back of the clock, the bucket's instant
// asOf may be later than the expiry. The history must still outlast the hold.
func (h *History) extend(t, until, asOf Instant, refund bool) {
	h.Until = max(h.Until, until, asOf+1)
	h.Longest = max(h.Longest, int64(until-t))
	if refund && (h.Due == 0 || until < h.Due) {
		h.Due = until
	}
}

// prune removes the epochs without open holds at the instant at: they ended earlier than the longest hold ago. While
// there are too many, it joins the oldest two: the lower minimum counts for both.
func (h *History) prune(at Instant) {
	for len(h.Epochs) > 1 && int64(at-h.Epochs[1].Start) >= h.Longest {
		h.Epochs = h.Epochs[1:]
	}
	for len(h.Epochs) > MaxEpochs {
		old, next := h.Epochs[0], h.Epochs[1]
		h.Epochs = h.Epochs[1:]
		h.Epochs[0] = Epoch{old.Start, min(old.Least, next.Least), min(old.Later, next.Later), min(old.Back+next.Back, maxUnits), old.Holds + next.Holds}
	}
}

// close removes a settled hold that was taken at the instant t.
func (h *History) close(t Instant) {
	for i := len(h.Epochs) - 1; i >= 0; i-- {
		if e := &h.Epochs[i]; e.Start <= t || i == 0 {
			e.Holds = max(e.Holds-1, 0)
			return
		}
	}
}
