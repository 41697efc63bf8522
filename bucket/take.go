// SPDX-License-Identifier: Apache-2.0

package bucket

import "time"

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
func (l Limit) Reserve(s State, now Instant, cost Tokens, maxWait time.Duration) (State, Snapshot) {
	var snap Snapshot
	after, v := l.Spend(s, now, cost, maxWait)
	v.Show(&snap, &l)
	return after, snap
}

// Peek answers as [Limit.Reserve] would, without spending: the snapshot shows
// the bucket as it is. With a maxWait of 0 it answers as [Limit.Take] would.
func (l Limit) Peek(s State, now Instant, cost Tokens, maxWait time.Duration) Snapshot {
	spent, at := l.refill(&s, now)
	snap := Snapshot{Limit: l, spent: spent, behind: int64(at - now)}
	snap.RetryAfter = l.retry(spent, cost, maxWait, snap.behind)
	snap.Allowed = snap.RetryAfter == 0
	return snap
}

// A Verdict is a decision in brief, small enough for registers. A store that
// replaces a state by compare-and-swap needs no [Snapshot] before it has won.
type Verdict struct {
	retryAfter    time.Duration
	spent, behind int64 // as in Snapshot
}

// Allowed says whether the cost was admitted.
func (v Verdict) Allowed() bool { return v.retryAfter == 0 }

// RetryAfter is that of the [Snapshot].
func (v Verdict) RetryAfter() time.Duration { return v.retryAfter }

// Show fills in the snapshot of a bucket of limit l.
func (v Verdict) Show(snap *Snapshot, l *Limit) {
	snap.Limit, snap.Allowed, snap.RetryAfter = *l, v.retryAfter == 0, v.retryAfter
	snap.spent, snap.behind = v.spent, v.behind
}

// Spend is [Limit.Reserve] in brief, for stores.
func (l *Limit) Spend(s State, now Instant, cost Tokens, maxWait time.Duration) (State, Verdict) {
	spent, at := l.refill(&s, now)
	behind := int64(at - now)
	if room := l.capacity - cost; cost < 0 || room < 0 || spent > int64(room)*l.p { // it is not there
		if retry := l.retry(spent, cost, maxWait, behind); retry > 0 {
			return s, Verdict{retry, spent, behind}
		}
	}
	spent += int64(cost) * l.p
	return State{Spent: spent, AsOf: at, Unit: l.p}, Verdict{0, spent, behind}
}

// retry is 0 where cost is admitted to a bucket of which spent is missing, and
// else the wait until the same call would be.
func (l *Limit) retry(spent int64, cost Tokens, maxWait time.Duration, behind int64) time.Duration {
	if cost < 0 || l.capacity-cost < -l.debt {
		return Never
	}
	// room is what may be missing before the cost. Cost and loan are at most
	// the debt beyond the capacity, so every term stays below 2^53.
	room := int64(l.capacity-cost)*l.p + l.loan(maxWait)
	switch {
	case room < 0:
		return Never // a full bucket would deny it, too
	case spent <= room:
		return 0
	}
	return micros(ceilDiv(spent-room, l.n), behind)
}

// loan is what may be owed by a cost that can wait for maxWait: what is refilled
// meanwhile, at most the debt, in units of 1/p.
func (l Limit) loan(maxWait time.Duration) int64 {
	if maxWait < time.Microsecond || l.n == 0 {
		return 0
	}
	longest, debt := int64(maxWait/time.Microsecond), int64(l.debt)*l.p
	if longest >= ceilDiv(debt, l.n) { // before multiplying: the product may be anything
		return debt
	}
	return longest * l.n
}

// Refund gives amount back at now; a bucket never holds more than its capacity.
// An amount of 0 or less changes nothing, and neither does a refund to a bucket
// that has not been charged: it may as well have been forgotten.
func (l Limit) Refund(s State, now Instant, amount Tokens) State {
	if amount <= 0 || s.Spent == 0 {
		return s
	}
	spent, at := l.refill(&s, now)
	if spent == 0 || int64(amount) >= ceilDiv(spent, l.p) { // before multiplying: amount may be anything
		return State{AsOf: at, Unit: l.p}
	}
	return State{Spent: spent - int64(amount)*l.p, AsOf: at, Unit: l.p}
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
