// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"math"
	"time"
)

// Take spends cost at now if the bucket holds it, and denies it otherwise. A denied take returns s unchanged.
//
// A cost of 0 is admitted unless the bucket is in debt. A negative cost is never admitted: use [Limit.Refund].
func (l Limit) Take(s State, now Instant, cost Tokens) (State, Snapshot) {
	return l.Reserve(s, now, cost, 0)
}

// Reserve spends cost at now if the bucket refills it within maxWait. The missing tokens become debt of at most
// [Limit.MaxReserved], and [Snapshot.Wait] is the time until the work may start, without another check. A
// denied reservation returns s unchanged.
//
// A maxWait of 0 is a take; a limit with a queue then admits a cost that fits in the queue. [Forced] admits any
// cost within the debt limit. A maxWait above [LongestWait] counts as LongestWait. Sliding limits take no reservations:
// they ignore every maxWait except Forced.
func (l Limit) Reserve(s State, now Instant, cost Tokens, maxWait time.Duration) (State, Snapshot) {
	var snap Snapshot
	after, v := l.Spend(s, now, cost, maxWait)
	v.Show(&snap, &l, cost, now)
	return after, snap
}

// Forced is a maxWait that admits every cost within the debt limit, however long the refill takes. Use it for
// costs of finished work.
const Forced time.Duration = math.MinInt64

// Peek returns the decision of [Limit.Reserve] without spending: the snapshot excludes the cost. With a maxWait
// of 0, it returns the decision of [Limit.Take].
func (l Limit) Peek(s State, now Instant, cost Tokens, maxWait time.Duration) Snapshot {
	var snap Snapshot
	l.peek(s, now, cost, maxWait).Show(&snap, &l, cost, now)
	return snap
}

// A Verdict is a compact decision that fits in registers. A store with compare-and-swap creates a [Snapshot]
// only after the swap succeeds.
type Verdict struct {
	retry               int64 // RetryAfter in microseconds
	spent, prev, behind int64 // as in Snapshot
}

// Allowed reports whether the cost was admitted.
func (v Verdict) Allowed() bool { return v.retry == 0 }

// RetryAfter returns the RetryAfter of the [Snapshot].
func (v Verdict) RetryAfter() time.Duration { return duration(v.retry) }

// Show fills in the snapshot of a decision of l about cost at now.
func (v Verdict) Show(snap *Snapshot, l *Limit, cost Tokens, now Instant) {
	snap.Limit, snap.Cost, snap.Allowed, snap.Spill = *l, cost, v.retry == 0, SpillNone
	snap.RetryAfter, snap.beyond = capWait(v.retry)
	snap.spent, snap.prev, snap.behind, snap.at, snap.penalty = v.spent, v.prev, v.behind, now+Instant(v.behind), 0
}

// Spend is [Limit.Reserve] with a verdict instead of a snapshot.
func (l *Limit) Spend(s State, now Instant, cost Tokens, maxWait time.Duration) (State, Verdict) {
	if l.how&howAlgorithm != 0 || s.History != nil {
		return l.spendOther(s, now, cost, maxWait)
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

// SpendOwn is [Limit.Spend] for a continuous bucket in the limit's own unit, for stores that keep only these
// two numbers. If it denies, it returns the refilled spent and at.
func (l *Limit) SpendOwn(spent int64, asOf, now Instant, cost Tokens, maxWait time.Duration) (after int64, at Instant, v Verdict) {
	spent, at = l.refillOwn(spent, asOf, now)
	behind := int64(at - now)
	if room := l.capacity - cost; cost < 0 || room < 0 || spent > int64(room)*l.p { // too few tokens
		if l.how != 0 && maxWait == 0 {
			maxWait = Forced // the queue bounds the debt: see decide
		}
		if retry := l.retryAfter(spent, cost, maxWait, behind); retry > 0 {
			return spent, at, Verdict{retry, spent, 0, behind}
		}
	}
	spent += int64(cost) * l.p
	return spent, at, Verdict{0, spent, 0, behind}
}

// spendOther is Spend for limits that are not continuous, and for buckets with holds. It is separate so that Spend
// stays in registers.
//
//go:noinline
func (l *Limit) spendOther(s State, now Instant, cost Tokens, maxWait time.Duration) (State, Verdict) {
	if s.History != nil {
		return l.spendHeld(s, now, cost, maxWait)
	}
	if l.Algorithm() == AlgorithmSlidingLog && s.Log != nil {
		if v := l.peek(s, now, cost, maxWait); v.retry > 0 {
			return s, v // before copying the log
		}
		s.Log = s.Log.clone()
	}
	v := l.SpendOn(&s, now, cost, maxWait)
	return s, v
}

// SpendOn is [Limit.Spend] in place: it changes s and its log if it admits the cost.
func (l *Limit) SpendOn(s *State, now Instant, cost Tokens, maxWait time.Duration) Verdict {
	if s.History != nil {
		var v Verdict
		*s, v = l.spendHeld(*s, now, cost, maxWait)
		return v
	}
	switch l.Algorithm() {
	case AlgorithmStepped:
		return l.spendStepped(s, now, cost, maxWait)
	case AlgorithmSlidingWindow:
		return l.spendWindow(s, now, cost, maxWait)
	case AlgorithmSlidingLog:
		return l.spendLog(s, now, cost, maxWait)
	case AlgorithmConcurrency:
		return l.spendSlots(s, now, cost)
	}
	var v Verdict
	*s, v = l.Spend(*s, now, cost, maxWait)
	return v
}

func (l *Limit) peek(s State, now Instant, cost Tokens, maxWait time.Duration) Verdict {
	v := l.verdictAt(&s, now)
	switch l.Algorithm() {
	case AlgorithmSlidingWindow:
		v.retry = l.windowAt(&s, now).retryAfter(l, cost, maxWait, now)
	case AlgorithmSlidingLog:
		v.retry = l.logOf(&s).retryAfter(l, cost, maxWait, now)
	case AlgorithmConcurrency:
		v.retry = l.retrySlots(v, cost)
	default:
		v.retry = l.decide(v, cost, maxWait, now)
	}
	return v
}

// Unit returns the [State.Unit] of states that l writes.
func (l Limit) Unit() int64 {
	switch l.Algorithm() {
	case AlgorithmContinuous:
		return l.p
	case AlgorithmSlidingWindow:
		return -l.p
	}
	return 1
}

// decide returns the wait in microseconds until the bucket of v admits cost, or 0 if it does at now.
func (l *Limit) decide(v Verdict, cost Tokens, maxWait time.Duration, now Instant) int64 {
	if maxWait == 0 && l.Queued() {
		maxWait = Forced // only the queue bounds the debt
	}
	if l.Algorithm() == AlgorithmStepped {
		return l.retryStepped(v, cost, maxWait, now)
	}
	return l.retryAfter(v.spent, cost, maxWait, v.behind)
}

// retryAfter returns the wait in microseconds until a bucket that lacks spent admits cost, or 0 if it does now.
func (l *Limit) retryAfter(spent int64, cost Tokens, maxWait time.Duration, behind int64) int64 {
	if cost < 0 || l.capacity-cost < -l.debt {
		return never
	}
	// room is the largest missing amount before the cost. Cost and loan exceed the capacity by at most the
	// debt, so every term stays below 2^53.
	room := int64(l.capacity-cost)*l.p + l.loan(maxWait)
	switch {
	case room < 0:
		return never // even a full bucket would deny it
	case spent <= room:
		return 0
	}
	return saturatingAdd(ceilDiv(spent-room, l.n), behind)
}

// loan returns the debt available to a cost that can wait for maxWait, in units of 1/p. It is the refill within
// maxWait, at most the debt limit.
func (l *Limit) loan(maxWait time.Duration) int64 {
	debt := int64(l.debt) * l.p
	if maxWait == Forced {
		return debt
	}
	if maxWait < time.Microsecond || l.n == 0 {
		return 0
	}
	longest := int64(maxWait / time.Microsecond)
	if longest >= ceilDiv(debt, l.n) { // compare before multiplying, which may overflow
		return debt
	}
	return longest * l.n
}

// Refund returns amount to the bucket at now, up to the capacity. It does nothing for an amount of 0 or less,
// or for a full bucket.
//
// A sliding window refunds the current window first. A sliding log refunds its oldest entries first, because
// then no other entry expires earlier.
func (l Limit) Refund(s State, now Instant, amount Tokens) State {
	if amount <= 0 || s.Spent == 0 {
		return s
	}
	switch l.Algorithm() {
	case AlgorithmSlidingWindow:
		after := l.refundWindow(s, now, amount)
		after.History = s.keepHistory(&l, now, 0)
		return after
	case AlgorithmSlidingLog:
		h := s.keepHistory(&l, now, 0)
		if s.Log != nil {
			s.Log = s.Log.clone()
		}
		l.refundLog(&s, now, amount)
		s.History = h
		return s
	}
	v, unit := l.verdictAt(&s, now), l.Unit()
	after := State{AsOf: now + Instant(v.behind), Unit: unit}
	if v.spent > 0 && int64(amount) < ceilDiv(v.spent, unit) { // compare before multiplying, which may overflow
		after.Spent = v.spent - int64(amount)*unit
	}
	if after.History = s.keepHistory(&l, now, v.spent); after.History != nil {
		after.History.refunded(v.spent-after.Spent, after.Spent)
	}
	return after
}

// RefundOn is [Limit.Refund] in place: it changes s and its log.
func (l *Limit) RefundOn(s *State, now Instant, amount Tokens) {
	if l.Algorithm() == AlgorithmSlidingLog {
		l.refundLog(s, now, amount)
		return
	}
	*s = l.Refund(*s, now, amount)
}

// A Charge is the part of one bucket in a request with several limits.
type Charge struct {
	Limit Limit
	Cost  Tokens
}

// TakeAll charges states[i] with charges[i] at now, all of them or none, and reports whether it did. It appends
// a snapshot per charge to dst. Snapshots of a denied request show uncharged buckets, and each Allowed is
// the decision of that bucket alone. maxWait is as in [Limit.Reserve]. The slices must have the same length.
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

// UpTo returns the part of cost to take if the emptiest bucket holds there: the full cost if it fits, otherwise the
// available whole tokens. If there are none, it returns one token, or a cost below one, and the take is then denied.
func UpTo(cost, there Tokens) Tokens {
	if cost <= there {
		return cost
	}
	return min(cost, max(there-there%Token, Token))
}
