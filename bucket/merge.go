// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"math/bits"
	"time"
)

// Shards are snapshots of some or all buckets of a sharded limit at one instant, in any order: see
// [Limit.Shard]. The methods read the buckets' contents and write each shard's part of a cost.
type Shards []Snapshot

// Spread divides cost among the shards within maxWait, and reports whether they can pay it. It sets Allowed and
// Cost of the paying shards and clears both for the others. It does not spend.
//
// If the fullest shard holds the cost, it pays alone. Otherwise each shard pays its tokens above a common level, so
// that all end at the same level. A debt, within maxWait or [Forced], is divided for the shortest wait.
func (s Shards) Spread(cost Tokens, maxWait time.Duration) bool {
	if !s.trySpread(cost, maxWait) {
		for i := range s {
			s[i].Cost, s[i].Allowed, s[i].RetryAfter = 0, false, 0
		}
		return false
	}
	return true
}

func (s Shards) trySpread(cost Tokens, maxWait time.Duration) bool {
	wait := time.Duration(0)
	if !s.canPay(cost, 0, 0) {
		if maxWait == 0 || !s.canPay(cost, 0, maxWait) {
			return false
		}
		least := searchFirst(maxUnits, func(us int64) bool { return s.canPay(cost, 0, duration(us)) })
		wait = duration(least)
	}
	fullest, most := 0, int64(0)
	for i := range s {
		room := s[i].room(0, wait)
		s[i].Cost, s[i].Allowed, s[i].RetryAfter = Tokens(max(room, 0)), false, 0
		if i == 0 || room > most {
			fullest, most = i, room
		}
	}
	if most >= int64(cost) {
		for i := range s {
			s[i].Cost = 0
		}
		s[fullest].Cost, s[fullest].Allowed = cost, true
		return true
	}
	s.levelCosts(cost)
	for i := range s {
		s[i].Allowed = s[i].Cost > 0
	}
	return true
}

// SpreadRefund divides amount among the shards. The emptiest shards get it first, so that all end at the same
// level. It sets their Cost and returns the sum, which is below amount only if the shards would overflow.
func (s Shards) SpreadRefund(amount Tokens) Tokens {
	sum := Tokens(0)
	for i := range s {
		s[i].Cost = Tokens(ceilDiv(s[i].spent, max(s[i].Limit.p, 1)))
		sum += s[i].Cost
	}
	if amount = max(amount, 0); sum <= amount {
		return sum
	}
	s.levelCosts(amount)
	return amount
}

// Cancelable returns the refundable part of a sharded take under limit l: the part that has not refilled since.
// [Limit.Cancel] does the same for one bucket. It is 0 while any shard is in debt. The shards must come from
// [Limit.Peek].
func (s Shards) Cancelable(l Limit, amount Tokens, t Taken) Tokens {
	at := t.At
	for i := range s {
		if b := &s[i]; b.spent > int64(b.Limit.capacity)*b.Limit.p {
			return 0
		}
		at = max(at, s[i].at)
	}
	return max(min(amount, t.Cost-Tokens(ceilDiv(l.refillBetween(t.At, at), max(l.p, 1)))), 0)
}

// TakenNow returns a take of cost at the instant of s, for a cancellation within bounds that the caller has checked.
func (s *Snapshot) TakenNow(cost Tokens) Taken { return Taken{Cost: cost, At: s.at} }

// levelCosts lowers the costs by a common level so that they add up to want, which must be between 0 and their sum.
func (s Shards) levelCosts(want Tokens) {
	above := func(level int64) (sum int64) {
		for i := range s {
			sum += max(int64(s[i].Cost)-level, 0)
		}
		return sum
	}
	top := int64(0)
	for i := range s {
		top = max(top, int64(s[i].Cost))
	}
	// Find the highest level with enough tokens above it. The surplus is less than a thousandth per shard, because the
	// next level would leave too little.
	level := max(searchFirst(top+1, func(level int64) bool { return above(level) < int64(want) })-1, 0)
	surplus := above(level) - int64(want)
	for i := range s {
		s[i].Cost = max(s[i].Cost-Tokens(level), 0)
		if surplus > 0 && s[i].Cost > 0 {
			s[i].Cost--
			surplus--
		}
	}
}

// Merge combines the shards after [Shards.Spread] into one snapshot under limit l. Remaining is the sum of the
// shards' rounded amounts. FullAfter and Wait are the longest of any shard; with a Wait, FullAfter is exact to
// a thousandth of a token per shard. The cost is admitted if the paying shards admitted all of it. RetryAfter
// is exact: the first instant at which the shards together hold enough.
//
// If only some shards are known, Remaining is scaled to the full capacity and rounded down, and RetryAfter
// covers only the known shards.
func (s Shards) Merge(l Limit, cost Tokens, maxWait time.Duration) Snapshot {
	m := Snapshot{Limit: l, Cost: cost}
	var known, left, paid Tokens
	var full, wait int64 // microseconds
	for i := range s {
		b := &s[i]
		known, left = known+b.Limit.capacity, left+b.Remaining()
		full, wait = max(full, b.fullAfter()), max(wait, b.wait())
		m.at = max(m.at, b.at)
		if b.Allowed {
			paid += b.Cost
			m.Allowed = true
		}
	}
	if m.Allowed = m.Allowed && paid == cost; !m.Allowed {
		m.RetryAfter, m.beyond = capWait(s.retryAfter(cost, maxWait, full))
		wait = 0
	}
	m.setMissing(mulDivCeil(int64(known-left), int64(l.capacity), int64(known)), full, wait)
	return m
}

// Preview is [Shards.Merge] before the shards are charged. For an admitted cost, [Snapshot.RefillAfter] is its
// wait. If the wait is not 0, FullAfter is approximate.
func (s Shards) Preview(l Limit, cost Tokens, maxWait time.Duration) Snapshot {
	m := s.Merge(l, cost, maxWait)
	if !m.Allowed {
		return m
	}
	wait := int64(0)
	for i := range s {
		if s[i].Allowed {
			wait = max(wait, s[i].refillAfter(s[i].Cost))
		}
	}
	if wait > 0 {
		m.behind += wait - m.refillAfter(cost)
	}
	return m
}

// setMissing makes m the snapshot of a bucket that lacks missing thousandths. Both durations are in microseconds.
func (m *Snapshot) setMissing(missing, full, wait int64) {
	l := &m.Limit
	switch {
	case l.n == 0 || full == 0:
	case wait > 0: // in debt by the refill of one microsecond
		m.spent = int64(l.capacity)*l.p + l.n
		m.behind = wait - 1
	default:
		m.spent = missing * l.p
		m.behind = full - ceilDiv(m.spent, l.n)
	}
}

// mulDivCeil returns ⌈a·b/c⌉ for 0 ≤ a ≤ c.
func mulDivCeil(a, b, c int64) int64 {
	if a <= 0 || c <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	q, r := bits.Div64(hi, lo, uint64(c)) // a ≤ c: the quotient is at most b
	return int64(q + min(r, 1))
}

// retryAfter returns the microseconds until the shards can pay cost within maxWait. All shards are full after
// full. The result is at least 1, because the request has been denied even if tokens have returned since.
func (s Shards) retryAfter(cost Tokens, maxWait time.Duration, full int64) int64 {
	if !s.canPay(cost, full, maxWait) {
		return never
	}
	return max(searchFirst(full, func(us int64) bool { return s.canPay(cost, us, maxWait) }), 1)
}

// canPay reports whether the shards can pay cost together within maxWait, after the given microseconds. A cost of
// 0 needs one shard that stays within its debt limit.
func (s Shards) canPay(cost Tokens, after int64, maxWait time.Duration) bool {
	sum, solvent := int64(0), false
	for i := range s {
		room := s[i].room(after, maxWait)
		sum += max(room, 0)
		solvent = solvent || room >= 0
	}
	return solvent && cost >= 0 && sum >= int64(cost)
}

// room returns the largest cost that the bucket admits after the given microseconds, within maxWait. It is
// negative if the debt exceeds its limit.
func (s *Snapshot) room(after int64, maxWait time.Duration) int64 {
	l := &s.Limit
	if l.n == 0 {
		return 0
	}
	spent := s.spent
	if passed := after - s.behind; passed >= ceilDiv(spent, l.n) {
		spent = 0
	} else if passed > 0 {
		spent -= passed * l.n
	}
	units := int64(l.capacity)*l.p + l.loan(maxWait) - spent
	if units < 0 {
		return -ceilDiv(-units, l.p)
	}
	return units / l.p
}

// searchFirst returns the smallest number in [0, most) for which ok is true, or most if there is none. If ok is
// true for a number, it must be true for all larger ones.
func searchFirst(most int64, ok func(int64) bool) int64 {
	low := int64(0)
	for low < most {
		if middle := low + (most-low)/2; ok(middle) {
			most = middle
		} else {
			low = middle + 1
		}
	}
	return low
}
