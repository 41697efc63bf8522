// SPDX-License-Identifier: Apache-2.0

package bucket_test

import "github.com/metehq/mete/bucket"

// The stepped bucket is simulated interval by interval, each of which adds its tokens. Runs of intervals that
// cannot fill the bucket are skipped.
type steps struct {
	l                  *oracleLimit
	capacity, debt, n  int64
	interval           int64
	level, since, asOf int64 // the tokens there since the beginning of an interval; asOf matters where it is full
}

func (o *oracle) steps(l *oracleLimit, now int64) *steps {
	n, p := l.limit.Refill()
	s := &steps{l: l, capacity: int64(l.limit.Capacity()), debt: int64(l.limit.MaxReserved()), n: int64(n), interval: p}
	s.level, s.since, s.asOf = s.capacity-o.carried(l).Num().Int64(), o.asOf, o.asOf
	if l.limit.Anchor() != bucket.AnchorFirst && !s.whole() {
		// Intervals of another limit add no tokens before their end.
		if s.since = floorTo(o.asOf, l.start, p); s.since < o.asOf {
			s.since += p
		}
	}
	s.level, s.since = s.at(now)
	s.level = max(s.level, -s.debt) // after a limit is lowered, the debt is within its debt limit
	return s
}

func (s *steps) whole() bool { return s.level >= s.capacity }

// at returns the tokens at t, and the start of the interval that contains t.
func (s *steps) at(t int64) (level, since int64) {
	b, t := *s, max(t, s.asOf)
	if leap := min((s.capacity-s.level)/s.n, (t-s.since)/s.interval) - 1; leap > 0 {
		b.level, b.since = b.level+leap*s.n, b.since+leap*s.interval
	}
	for !b.whole() && b.since+b.interval <= t {
		b.since += b.interval
		b.level = min(b.level+b.n, b.capacity)
	}
	switch first := s.l.limit.Anchor() == bucket.AnchorFirst; {
	case b.whole() && first:
		return b.capacity, t // the interval begins when something is taken
	case b.whole():
		return b.capacity, floorTo(t, s.l.start, s.interval)
	}
	return b.level, b.since
}

// comes returns the interval start with want tokens, which must be at most the capacity.
func (s *steps) comes(level, since, want int64) int64 {
	if leap := (want-level)/s.n - 1; leap > 0 {
		level, since = level+leap*s.n, since+leap*s.interval
	}
	for level < want {
		level, since = level+s.n, since+s.interval
	}
	return since
}

func (s *steps) admits(t, cost, maxWait int64) bool {
	level, since := s.at(t)
	switch {
	case cost < 0 || level-cost < -s.debt:
		return false
	case level >= cost || maxWait == forced || maxWait == 0 && s.l.limit.Queued():
		return true
	}
	return maxWait > 0 && cost <= s.capacity && s.comes(level, since, cost) <= max(t, since)+min(maxWait, longest)
}

func (s *steps) remaining(t int64) int64 { level, _ := s.at(t); return level }
func (s *steps) full(t int64) bool       { level, _ := s.at(t); return level == s.capacity }
func (s *steps) owes(t, _ int64) bool    { level, _ := s.at(t); return level < 0 }

func (s *steps) end() int64 {
	if s.whole() {
		return s.asOf
	}
	return s.comes(s.level, s.since, s.capacity)
}

func (s *steps) spend(o *oracle, now, cost int64) {
	level, since := s.at(now)
	o.write(s.l, s.capacity-level+cost, since)
}

func (s *steps) refund(o *oracle, now, amount int64) {
	level, since := s.at(now)
	o.write(s.l, s.capacity-level-min(amount, s.capacity-level), since)
}
