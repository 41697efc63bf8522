// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"slices"
	"time"
)

// MaxAccounts bounds the accounts of a [Row]. A limit beyond them replaces the
// account that was charged longest ago.
const MaxAccounts = 3

// An Account is the state of one bucket under one version of its limit.
type Account struct {
	Limit Limit
	State State
}

// A Row is everything that a store keeps for one key: an account for each version
// of the limit that is in use. The version that was charged last comes first. The
// nil Row is a full bucket.
//
// Two versions of a policy meet on one store during every rolling deploy. Each
// take is charged to all accounts, and the account of the asking limit decides.
// So up to [MaxAccounts] versions that alternate on one key admit, in any
// interval, at most the sum of their own bounds. Limits that differ in anything
// are different versions, also those that differ only in their capacity.
//
// Accounts leave a row together, when all of them are full. A Row is a value; its
// methods return a new one where something changes.
type Row []Account

// find returns the index of l's account, -1 where it has none.
func (r Row) find(l *Limit) int {
	for i := range r {
		if r[i].Limit == *l {
			return i
		}
	}
	return -1
}

// Open returns the state of the bucket under l at now, and reports whether the row
// has to gain an account for l. It has not where l has an account, or where the
// row is full.
//
// A new account starts from the account that misses most: it is at most empty, and
// owes what that one owes, as far as l may owe it. Until now each account refills
// by its own limit.
func (r Row) Open(l *Limit, now Instant) (s State, fresh bool) {
	if i := r.find(l); i >= 0 {
		return r[i].State, false
	}
	at, missing, most := now, int64(0), 0
	for i := range r {
		at = max(at, r[i].State.AsOf)
		if m := r[i].Limit.missing(&r[i].State, now); m > missing {
			missing, most = m, i
		}
	}
	if missing == 0 {
		return l.begin(0, at), false
	}
	holds := int64(r[most].Limit.capacity)
	used, owed := min(missing, holds), max(missing-holds, 0)
	return l.begin(min(used, int64(l.capacity))+min(owed, int64(l.debt)), at), true
}

// missing returns what a bucket lacks at now, in thousandths, rounded up.
func (l *Limit) missing(s *State, now Instant) int64 {
	v := l.look(s, now)
	switch l.Algorithm() {
	case Continuous:
		return ceilDiv(v.spent, max(l.p, 1))
	case SlidingWindow:
		w := l.slide(s, now)
		return w.missing(l, max(now, w.start))
	}
	return v.spent
}

// begin returns the state of a bucket of l that lacks so many thousandths at the
// instant at.
func (l *Limit) begin(missing int64, at Instant) State {
	s := State{Spent: missing, AsOf: at, Unit: l.Unit()}
	switch l.Algorithm() {
	case Continuous:
		s.Spent *= l.p
	case Stepped:
		if l.Anchor() != AnchorFirst {
			s.AsOf = l.beginning(at)
		}
	case SlidingWindow:
		s.AsOf = max(at, 0) / Instant(l.p) * Instant(l.p)
	case SlidingLog:
		if missing > 0 {
			s.Log = &Log{[]Entry{{at, Tokens(missing)}}, missing}
		}
	}
	return s
}

// Write returns the row after a decision of l about cost at now. The state s is
// that of [Row.Open], after the cost where it was admitted. All other accounts are
// charged the same cost, but stop at empty. They leave the row when all of them are
// full.
//
// A denied cost is 0 here. A store writes it only where Open called the account
// fresh: otherwise each retry would start from an empty account again, and its
// RetryAfter would be wrong.
func (r Row) Write(l *Limit, s State, now Instant, cost Tokens) Row {
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
		others = others || !r[i].full(now)
		row = append(row, r[i].charge(now, cost))
	}
	if !others {
		return row[:1]
	}
	return row
}

// charge returns the account after a cost that another account admitted. It stops
// at empty, and an account that is empty or owes tokens stays as it is.
func (a Account) charge(now Instant, cost Tokens) Account {
	l, s := &a.Limit, &a.State
	missing := l.missing(s, now)
	if cost = min(cost, l.capacity-Tokens(missing)); cost <= 0 {
		return a
	}
	switch l.Algorithm() {
	case Continuous:
		spent, at := l.refill(s, now)
		a.State = State{Spent: spent + int64(cost)*l.p, AsOf: at, Unit: l.p}
	case Stepped:
		spent, at := l.step(s, now)
		a.State = State{Spent: spent + int64(cost), AsOf: at, Unit: 1}
	case SlidingWindow:
		w := l.slide(s, now)
		w.cur += int64(cost)
		a.State = w.state(l)
	case SlidingLog:
		if s.Log != nil {
			s.Log = s.Log.clone()
		}
		g := l.entries(s)
		at := max(now, g.newest())
		g.expire(l, at)
		g.add(Entry{at, cost})
		s.keep(g, at)
	}
	return a
}

func (a *Account) full(now Instant) bool { return a.Limit.Full(a.State, now) }

// Refund gives amount back to all accounts at now, as [Limit.Refund] does: an
// administrator's refund is for the client, whichever version of the limit asks next.
func (r Row) Refund(now Instant, amount Tokens) Row {
	row := slices.Clone(r)
	for i := range row {
		row[i].State = row[i].Limit.Refund(row[i].State, now, amount)
	}
	return row
}

// Cancel gives amount of a take back at now, as [Limit.Cancel] does, to the account
// of the limit that admitted it. Other accounts keep what they were charged: what
// that was is not known. Without such an account, r is returned as it is.
func (r Row) Cancel(l *Limit, now Instant, amount Tokens, t Taken) Row {
	i := r.find(l)
	if i < 0 {
		return r
	}
	row := slices.Clone(r)
	row[i].State = l.Cancel(row[i].State, now, amount, t)
	return row
}

// Full reports whether all accounts are full at now: then the row may be evicted.
func (r Row) Full(now Instant) bool {
	for i := range r {
		if !r[i].full(now) {
			return false
		}
	}
	return true
}

// FullAfter is how long it takes from now until all accounts are full, if nothing
// more is taken: the time to live of the row.
func (r Row) FullAfter(now Instant) time.Duration {
	longest := time.Duration(0)
	for i := range r {
		longest = max(longest, r[i].Limit.Peek(r[i].State, now, 0, 0).FullAfter())
	}
	return longest
}
