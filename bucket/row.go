// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"slices"
	"time"
)

// MaxAccounts bounds the accounts of a [Row]. If the row is full, a new account replaces the least recently
// charged one.
const MaxAccounts = 3

// An Account is the state of one bucket under one version of its limit.
type Account struct {
	Limit Limit
	State State
}

// A Row is the stored data of one key: an account for each active version of the limit, most recently charged
// first. The nil Row is a full bucket.
//
// During a rolling deploy, two versions of a policy use one store. Each take is charged to all accounts, and the
// account of its own limit decides. Up to [MaxAccounts] versions on one key therefore admit at most the sum of their
// own bounds in any interval. Limits with any difference, even only in the capacity, are different versions.
//
// Accounts are removed together when all of them are full. A Row is a value: its methods return a new Row.
type Row []Account

func (r Row) find(l *Limit) int {
	for i := range r {
		if r[i].Limit == *l {
			return i
		}
	}
	return -1
}

// StateFor returns the state of the bucket under l at now. fresh is true if l needs a new account: it has none, and
// the row is not full.
//
// A new account copies the account with the largest missing amount. It starts at most empty, plus that
// account's debt within l's debt limit.
func (r Row) StateFor(l *Limit, now Instant) (s State, fresh bool) {
	if i := r.find(l); i >= 0 {
		return r[i].State, false
	}
	at, missing, most := now, int64(0), 0
	for i := range r {
		at = max(at, r[i].State.AsOf)
		if m := r[i].Limit.missingAt(&r[i].State, now); m > missing {
			missing, most = m, i
		}
	}
	if missing == 0 {
		return l.newState(0, at), false
	}
	holds := int64(r[most].Limit.capacity)
	used, owed := min(missing, holds), max(missing-holds, 0)
	return l.newState(min(used, int64(l.capacity))+min(owed, int64(l.debt)), at), true
}

// missingAt returns the missing amount at now, in thousandths, rounded up.
func (l *Limit) missingAt(s *State, now Instant) int64 {
	v := l.verdictAt(s, now)
	switch l.Algorithm() {
	case AlgorithmContinuous:
		return ceilDiv(v.spent, max(l.p, 1))
	case AlgorithmSlidingWindow:
		w := l.windowAt(s, now)
		return w.missingAt(l, max(now, w.start))
	}
	return v.spent
}

func (l *Limit) newState(missing int64, at Instant) State {
	s := State{Spent: missing, AsOf: at, Unit: l.Unit()}
	switch l.Algorithm() {
	case AlgorithmContinuous:
		s.Spent *= l.p
	case AlgorithmStepped:
		if l.Anchor() != AnchorFirst {
			s.AsOf = l.intervalStart(at)
		}
	case AlgorithmSlidingWindow:
		s.AsOf = max(at, 0) / Instant(l.p) * Instant(l.p)
	case AlgorithmSlidingLog:
		if missing > 0 {
			s.Log = &Log{[]Entry{{at, Tokens(missing)}}, missing}
		}
	case AlgorithmConcurrency:
		if missing > 0 {
			s.AsOf = at + Instant(l.p)
		}
	}
	return s
}

// WithState returns the row after l's decision about cost at now. s is the state from [Row.StateFor], after the cost if it
// was admitted. WithState charges the cost to all other accounts too, down to empty, and removes them when all are full.
//
// Pass a denied cost as 0. Store the row of a denied cost only if StateFor returned fresh. Otherwise each retry would
// start from an empty account again and get a wrong RetryAfter.
func (r Row) WithState(l *Limit, s State, now Instant, cost Tokens) Row {
	own := r.find(l)
	if own < 0 && len(r) == 0 || own == 0 && len(r) == 1 {
		return Row{{*l, s}}
	}
	row := append(make(Row, 0, MaxAccounts), Account{*l, s})
	others := false
	for i := range r {
		if i == own || len(row) == MaxAccounts {
			continue
		}
		others = others || !r[i].isFull(now)
		row = append(row, r[i].charge(now, cost))
	}
	if !others {
		return row[:1]
	}
	return row
}

// charge returns the account after a cost that another account admitted. It never puts the account into debt.
func (a Account) charge(now Instant, cost Tokens) Account {
	l, s := &a.Limit, &a.State
	missing := l.missingAt(s, now)
	if cost = min(cost, l.capacity-Tokens(missing)); cost <= 0 {
		return a
	}
	switch l.Algorithm() {
	case AlgorithmContinuous, AlgorithmStepped:
		v, unit := l.verdictAt(s, now), l.Unit()
		after := State{Spent: v.spent + int64(cost)*unit, AsOf: now + Instant(v.behind), Unit: unit}
		if after.History = s.keepHistory(l, now, v.spent); after.History != nil {
			after.History.note(v.spent)
		}
		a.State = after
	case AlgorithmSlidingWindow:
		w := l.windowAt(s, now)
		w.cur += int64(cost)
		h := s.keepHistory(l, now, 0)
		a.State = w.state(l)
		a.State.History = h
	case AlgorithmSlidingLog:
		if s.Log != nil {
			s.Log = s.Log.clone()
		}
		g := l.logOf(s)
		at := max(now, g.newest())
		g.expire(l, at)
		g.add(Entry{at, cost})
		h := s.keepHistory(l, now, 0)
		s.setLog(g, at)
		s.History = h
	}
	return a
}

func (a *Account) isFull(now Instant) bool { return a.Limit.Full(a.State, now) }

// Refund returns amount to all accounts at now, as [Limit.Refund] does: the client must benefit under every
// version of the limit.
func (r Row) Refund(now Instant, amount Tokens) Row {
	row := slices.Clone(r)
	for i := range row {
		row[i].State = row[i].Limit.Refund(row[i].State, now, amount)
	}
	return row
}

// Cancel refunds amount of a take at now to the account of l, as [Limit.Cancel] does. Other accounts keep their
// charges, which are not recorded per take. Without an account of l, Cancel returns r.
func (r Row) Cancel(l *Limit, now Instant, amount Tokens, t Taken) Row {
	i := r.find(l)
	if i < 0 {
		return r
	}
	row := slices.Clone(r)
	row[i].State = l.Cancel(row[i].State, now, amount, t)
	return row
}

// Full reports whether all accounts are full at now. The row may then be evicted.
func (r Row) Full(now Instant) bool {
	for i := range r {
		if !r[i].isFull(now) {
			return false
		}
	}
	return true
}

// FullAfter returns the time from now until all accounts are full, if nothing else is taken. It is the row's
// time to live.
func (r Row) FullAfter(now Instant) time.Duration {
	longest := time.Duration(0)
	for i := range r {
		longest = max(longest, r[i].Limit.Peek(r[i].State, now, 0, 0).FullAfter())
	}
	return longest
}
