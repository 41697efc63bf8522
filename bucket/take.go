// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"math"
	"time"
)

// Take spends cost at now, or denies it: it is admitted when the bucket holds
// that much. A denied take returns s as it was.
//
// A cost of 0 is admitted whenever nothing is owed. A negative cost is never
// admitted; to give tokens back there is [Limit.Refund].
func (l Limit) Take(s State, now Instant, cost Tokens) (State, Snapshot) {
	return l.Reserve(s, now, cost, 0)
}

// Reserve spends cost at now if the bucket will have refilled that much within
// maxWait. Tokens that are not there yet are owed: the snapshot's
// [Snapshot.Wait] says when the work may start, and it need not be checked
// again. What is owed stays within [Limit.MaxReserved]. Like [Limit.Take], it
// returns s as it was where it denies.
//
// A maxWait of 0 is a take; a limit with a queue then admits what finds room in
// it. [Forced] admits whatever may be owed, and a maxWait above [Longest] counts as
// that. Sliding limits take no reservations: between 0 and Forced, maxWait makes no
// difference to them.
func (l Limit) Reserve(s State, now Instant, cost Tokens, maxWait time.Duration) (State, Snapshot) {
	var snap Snapshot
	after, v := l.Spend(s, now, cost, maxWait)
	v.Show(&snap, &l, cost, now)
	return after, snap
}

// Forced is a maxWait that never denies what the bucket can owe, however long it
// takes to come back: for costs that have arisen already.
const Forced time.Duration = math.MinInt64

// Peek answers as [Limit.Reserve] would, without spending: the snapshot shows
// the bucket as it is. With a maxWait of 0 it answers as [Limit.Take] would.
func (l Limit) Peek(s State, now Instant, cost Tokens, maxWait time.Duration) Snapshot {
	var snap Snapshot
	l.consider(s, now, cost, maxWait).Show(&snap, &l, cost, now)
	return snap
}

// A Verdict is a decision in brief, small enough for registers. A store that
// replaces a state by compare-and-swap needs no [Snapshot] before it has won.
type Verdict struct {
	retry               int64 // RetryAfter in microseconds
	spent, prev, behind int64 // as in Snapshot
}

// Allowed says whether the cost was admitted.
func (v Verdict) Allowed() bool { return v.retry == 0 }

// RetryAfter is that of the [Snapshot].
func (v Verdict) RetryAfter() time.Duration { return duration(v.retry) }

// Show fills in the snapshot of a bucket of limit l that was asked for cost at now.
func (v Verdict) Show(snap *Snapshot, l *Limit, cost Tokens, now Instant) {
	snap.Limit, snap.Cost, snap.Allowed = *l, cost, v.retry == 0
	snap.RetryAfter, snap.beyond = shown(v.retry)
	snap.spent, snap.prev, snap.behind, snap.at = v.spent, v.prev, v.behind, now+Instant(v.behind)
}

// Spend is [Limit.Reserve] in brief, for stores.
func (l *Limit) Spend(s State, now Instant, cost Tokens, maxWait time.Duration) (State, Verdict) {
	if l.how&howAlgorithm != 0 {
		return l.spend(s, now, cost, maxWait)
	}
	spent := s.Spent
	if s.Unit != l.p && spent != 0 {
		spent = l.convert(s)
	}
	spent, at, v := l.SpendOwn(spent, s.AsOf, now, cost, maxWait)
	if v.retry > 0 {
		return s, v
	}
	return State{Spent: spent, AsOf: at, Unit: l.p}, v
}

// SpendOwn is [Limit.Spend] for a continuous bucket whose state has the limit's
// unit, in as few words as it can be said: for stores that keep just these. Where
// it denies, spent and at are what has come back until now.
func (l *Limit) SpendOwn(spent int64, asOf, now Instant, cost Tokens, maxWait time.Duration) (after int64, at Instant, v Verdict) {
	spent, at = l.own(spent, asOf, now)
	behind := int64(at - now)
	if room := l.capacity - cost; cost < 0 || room < 0 || spent > int64(room)*l.p { // it is not there
		if l.how != 0 && maxWait == 0 {
			maxWait = Forced // as in decide
		}
		if retry := l.retry(spent, cost, maxWait, behind); retry > 0 {
			return spent, at, Verdict{retry, spent, 0, behind}
		}
	}
	spent += int64(cost) * l.p
	return spent, at, Verdict{0, spent, 0, behind}
}

// spend is Spend for limits that are no continuous bucket. It is a
// function of its own to keep that one in registers.
//
//go:noinline
func (l *Limit) spend(s State, now Instant, cost Tokens, maxWait time.Duration) (State, Verdict) {
	if l.Algorithm() == SlidingLog && s.Log != nil {
		if v := l.consider(s, now, cost, maxWait); v.retry > 0 {
			return s, v // and not a copy of its log
		}
		s.Log = s.Log.clone()
	}
	v := l.SpendOn(&s, now, cost, maxWait)
	return s, v
}

// SpendOn is [Limit.Spend] in place: it changes s, and the log that s has, where
// it admits the cost.
func (l *Limit) SpendOn(s *State, now Instant, cost Tokens, maxWait time.Duration) Verdict {
	switch l.Algorithm() {
	case Stepped:
		return l.spendStepped(s, now, cost, maxWait)
	case SlidingWindow:
		return l.spendWindow(s, now, cost, maxWait)
	case SlidingLog:
		return l.spendLog(s, now, cost, maxWait)
	}
	var v Verdict
	*s, v = l.Spend(*s, now, cost, maxWait)
	return v
}

// consider is [Limit.Peek] in brief.
func (l *Limit) consider(s State, now Instant, cost Tokens, maxWait time.Duration) Verdict {
	v := l.look(&s, now)
	switch l.Algorithm() {
	case SlidingWindow:
		v.retry = l.slide(&s, now).retry(l, cost, maxWait, now)
	case SlidingLog:
		v.retry = l.entries(&s).retry(l, cost, maxWait, now)
	default:
		v.retry = l.decide(v, cost, maxWait)
	}
	return v
}

// Unit is the [State.Unit] of the states that l writes.
func (l Limit) Unit() int64 {
	switch l.Algorithm() {
	case Continuous:
		return l.p
	case SlidingWindow:
		return -l.p
	}
	return 1
}

// decide returns the wait until cost is admitted to the bucket that v shows, 0
// where it is now, in microseconds.
func (l *Limit) decide(v Verdict, cost Tokens, maxWait time.Duration) int64 {
	if maxWait == 0 && l.Queued() {
		maxWait = Forced // the queue bounds what may be owed, and nothing else does
	}
	if l.Algorithm() == Stepped {
		return l.retryStepped(v.spent, cost, maxWait, v.behind)
	}
	return l.retry(v.spent, cost, maxWait, v.behind)
}

// retry is 0 where cost is admitted to a bucket of which spent is missing, and
// else the wait until the same call would be, in microseconds.
func (l *Limit) retry(spent int64, cost Tokens, maxWait time.Duration, behind int64) int64 {
	if cost < 0 || l.capacity-cost < -l.debt {
		return never
	}
	// room is what may be missing before the cost. Cost and loan are at most
	// the debt beyond the capacity, so every term stays below 2^53.
	room := int64(l.capacity-cost)*l.p + l.loan(maxWait)
	switch {
	case room < 0:
		return never // a full bucket would deny it, too
	case spent <= room:
		return 0
	}
	return sum(ceilDiv(spent-room, l.n), behind)
}

// loan is what may be owed by a cost that can wait for maxWait: what is refilled
// meanwhile, at most the debt, in units of 1/p.
func (l *Limit) loan(maxWait time.Duration) int64 {
	debt := int64(l.debt) * l.p
	if maxWait == Forced {
		return debt
	}
	if maxWait < time.Microsecond || l.n == 0 {
		return 0
	}
	longest := int64(maxWait / time.Microsecond)
	if longest >= ceilDiv(debt, l.n) { // before multiplying: the product may be anything
		return debt
	}
	return longest * l.n
}

// Refund gives amount back at now; a bucket never holds more than its capacity.
// An amount of 0 or less changes nothing, and neither does a refund to a bucket
// that has not been charged: it may as well have been forgotten.
//
// A sliding window gives back of this window first. A sliding log gives back its
// oldest entries, whichever was meant: the others leave it no sooner.
func (l Limit) Refund(s State, now Instant, amount Tokens) State {
	if amount <= 0 || s.Spent == 0 {
		return s
	}
	switch l.Algorithm() {
	case SlidingWindow:
		return l.refundWindow(s, now, amount)
	case SlidingLog:
		if s.Log != nil {
			s.Log = s.Log.clone()
		}
		l.refundLog(&s, now, amount)
		return s
	}
	v, unit := l.look(&s, now), l.Unit()
	at := now + Instant(v.behind)
	if v.spent == 0 || int64(amount) >= ceilDiv(v.spent, unit) { // before multiplying: amount may be anything
		return State{AsOf: at, Unit: unit}
	}
	return State{Spent: v.spent - int64(amount)*unit, AsOf: at, Unit: unit}
}

// RefundOn is [Limit.Refund] in place: it changes s, and the log that s has.
func (l *Limit) RefundOn(s *State, now Instant, amount Tokens) {
	if l.Algorithm() == SlidingLog {
		l.refundLog(s, now, amount)
		return
	}
	*s = l.Refund(*s, now, amount)
}

// A Charge is one bucket's part in a request that falls under several limits.
type Charge struct {
	Limit Limit
	Cost  Tokens
}

// TakeAll charges states[i] with charges[i] at now, all of them or none, and
// reports which. It appends a snapshot for each to dst: where the request is
// denied every bucket is shown uncharged, and those that would have admitted it
// say so. maxWait is that of [Limit.Reserve]. The two slices have one length.
func TakeAll(dst []Snapshot, states []State, charges []Charge, now Instant, maxWait time.Duration) ([]Snapshot, bool) {
	first, allowed := len(dst), true
	for i, c := range charges {
		snap := c.Limit.Peek(states[i], now, c.Cost, maxWait)
		dst, allowed = append(dst, snap), allowed && snap.Allowed
	}
	if allowed {
		for i, c := range charges {
			states[i], dst[first+i] = c.Limit.Reserve(states[i], now, c.Cost, maxWait)
		}
	}
	return dst, allowed
}

// UpTo returns how much of cost is taken from buckets of which the emptiest
// holds there, where a part will do: all of it if that is there, and else as many
// whole tokens as are; at least one token, or the cost if that is less. If there
// is not even that, taking it will be denied.
func UpTo(cost, there Tokens) Tokens {
	if cost <= there {
		return cost
	}
	return min(cost, max(there-there%Token, Token))
}
