// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"math/bits"
	"time"
)

// Shards are snapshots of buckets that one limit is split over, seen at one
// instant: all of them, in any order, or some. See [Limit.Shard]. Its methods
// read what the buckets hold, and write which of them take part.
type Shards []Snapshot

// Spread decides how the shards pay cost together, within maxWait, and whether
// they can. It sets Allowed of the shards that pay and Cost to their parts; of
// the others it clears both. It does not spend.
//
// Where the fullest shard holds the cost it pays alone. Where it takes several,
// each pays what it holds above a common level, so that they end alike. What is
// to be owed, within maxWait or [Forced], is owed so that the wait is as short
// as it can be.
func (s Shards) Spread(cost Tokens, maxWait time.Duration) bool {
	if !s.pay(cost, maxWait) {
		for i := range s {
			s[i].Cost, s[i].Allowed, s[i].RetryAfter = 0, false, 0
		}
		return false
	}
	return true
}

func (s Shards) pay(cost Tokens, maxWait time.Duration) bool {
	wait := time.Duration(0)
	if !s.hold(cost, 0, 0) {
		if maxWait == 0 || !s.hold(cost, 0, maxWait) {
			return false
		}
		least := first(maxUnits, func(us int64) bool { return s.hold(cost, 0, duration(us)) })
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
	s.level(cost)
	for i := range s {
		s[i].Allowed = s[i].Cost > 0
	}
	return true
}

// SpreadRefund decides how amount is given back to the shards: those that miss
// most get it first, so that they end alike. It sets their Cost to what they get
// and returns the sum, which is less than amount only where they do not miss so
// much.
func (s Shards) SpreadRefund(amount Tokens) Tokens {
	sum := Tokens(0)
	for i := range s {
		s[i].Cost = Tokens(ceilDiv(s[i].spent, max(s[i].Limit.p, 1)))
		sum += s[i].Cost
	}
	if amount = max(amount, 0); sum <= amount {
		return sum
	}
	s.level(amount)
	return amount
}

// Cancelable is how much of a take that the shards of limit l paid they can get
// back together, as [Limit.Cancel] has it for one bucket: what has not been
// refilled since. They get back nothing while one of them owes tokens. The shards
// are as [Limit.Peek] shows them.
func (s Shards) Cancelable(l Limit, amount Tokens, t Taken) Tokens {
	at := t.At
	for i := range s {
		if b := &s[i]; b.spent > int64(b.Limit.capacity)*b.Limit.p {
			return 0
		}
		at = max(at, s[i].at)
	}
	return max(min(amount, t.Cost-Tokens(ceilDiv(l.refilled(at-t.At), max(l.p, 1)))), 0)
}

// Seen returns a take of cost at the instant that s shows, for a cancellation whose
// bounds have been checked already.
func (s *Snapshot) Seen(cost Tokens) Taken { return Taken{Cost: cost, At: s.at} }

// level lowers the costs to what is above one level, so that they add up to
// want, which is at least 0 and at most their sum.
func (s Shards) level(want Tokens) {
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
	// The highest level with enough above it. What is too much is less than a
	// thousandth for each shard: at the next level it would be too little.
	level := max(first(top+1, func(level int64) bool { return above(level) < int64(want) })-1, 0)
	surplus := above(level) - int64(want)
	for i := range s {
		s[i].Cost = max(s[i].Cost-Tokens(level), 0)
		if surplus > 0 && s[i].Cost > 0 {
			s[i].Cost--
			surplus--
		}
	}
}

// Merge shows the shards, once [Shards.Spread] has decided, as the one bucket of
// limit l. Remaining is the sum of what they hold, each rounded down; FullAfter
// and Wait are the longest, FullAfter to within a thousandth of a shard's token
// where there is a Wait. The cost is admitted where the shards that pay have
// admitted all of it. RetryAfter is exact: the first instant at which they hold
// enough together.
//
// Where only some of the shards are known, Remaining is in proportion to their
// part of the capacity, rounded down, and a RetryAfter is theirs.
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
		m.RetryAfter, m.beyond = shown(s.retry(cost, maxWait, full))
		wait = 0
	}
	m.show(scale(int64(known-left), int64(l.capacity), int64(known)), full, wait)
	return m
}

// Preview is [Shards.Merge] of shards that have not been charged: where the cost
// is admitted, [Snapshot.Earliest] says how long it will have to wait. Where that
// is not 0, FullAfter is only near what it would be.
func (s Shards) Preview(l Limit, cost Tokens, maxWait time.Duration) Snapshot {
	m := s.Merge(l, cost, maxWait)
	if !m.Allowed {
		return m
	}
	wait := int64(0)
	for i := range s {
		if s[i].Allowed {
			wait = max(wait, s[i].earliest(s[i].Cost))
		}
	}
	if wait > 0 {
		m.behind += wait - m.earliest(cost)
	}
	return m
}

// show makes m the snapshot of a bucket that misses so much, in thousandths. The two
// waits are in microseconds.
func (m *Snapshot) show(missing, full, wait int64) {
	l := &m.Limit
	switch {
	case l.n == 0 || full == 0:
	case wait > 0: // it owes as much as it refills in a microsecond
		m.spent = int64(l.capacity)*l.p + l.n
		m.behind = wait - 1
	default:
		m.spent = missing * l.p
		m.behind = full - ceilDiv(m.spent, l.n)
	}
}

// scale returns ⌈a·b/c⌉ for 0 ≤ a ≤ c.
func scale(a, b, c int64) int64 {
	if a <= 0 || c <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	q, r := bits.Div64(hi, lo, uint64(c)) // a ≤ c: the quotient is at most b
	return int64(q + min(r, 1))
}

// retry is how many microseconds it takes until the shards can pay cost within
// maxWait. All of them are full after full. It is above 0: the request has been
// denied, though tokens may have come back meanwhile.
func (s Shards) retry(cost Tokens, maxWait time.Duration, full int64) int64 {
	if !s.hold(cost, full, maxWait) {
		return never
	}
	return max(first(full, func(us int64) bool { return s.hold(cost, us, maxWait) }), 1)
}

// hold reports whether the shards, after so many microseconds, can pay cost
// together within maxWait. A cost of 0 needs one that owes nothing beyond it.
func (s Shards) hold(cost Tokens, after int64, maxWait time.Duration) bool {
	sum, solvent := int64(0), false
	for i := range s {
		room := s[i].room(after, maxWait)
		sum += max(room, 0)
		solvent = solvent || room >= 0
	}
	return solvent && cost >= 0 && sum >= int64(cost)
}

// room is the most that the bucket admits after so many microseconds, within
// maxWait. It is negative where it owes more than it can lend.
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

// first returns the least number from 0 to most of which ok holds, where it
// holds of all above it, too; most where it holds of none below.
func first(most int64, ok func(int64) bool) int64 {
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
