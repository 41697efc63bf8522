// SPDX-License-Identifier: Apache-2.0

package bucket

import "time"

// A Point is the level of a bucket After a snapshot. A negative level is debt.
type Point struct {
	After time.Duration
	Level Tokens
}

// Level returns the available tokens plus the free places in the queue. It is negative for a bucket in debt.
func (s Snapshot) Level() Tokens {
	if owed := s.Debt(); owed > 0 && !s.Limit.Queued() {
		return -owed
	}
	return s.Room()
}

// LevelCurve returns the level of the bucket for the duration d after s, if nothing else is taken. The level is
// linear between points. A jump is a pair of points that are one microsecond apart. For a stepped bucket with
// more steps than the parameter most, one line replaces the steps.
//
// The points follow [Snapshot.After], with the same exceptions. Between points, a line is exact to two thousandths.
// For a sliding window, the error grows by a 4096th of its tokens because the engine counts in such parts.
func (s Snapshot) LevelCurve(d time.Duration, most int) []Point {
	until := int64(d / time.Microsecond)
	course := []Point{{0, s.Level()}}
	if until <= 0 {
		return course
	}
	add := func(us int64) {
		after := time.Duration(us) * time.Microsecond
		if us > int64(course[len(course)-1].After/time.Microsecond) {
			course = append(course, Point{after, s.After(after).Level()})
		}
	}
	bends, steps := s.breakpoints(until, most)
	for _, us := range bends {
		if us <= 0 || us > until {
			continue
		}
		if steps {
			add(us - 1)
		}
		add(us)
	}
	add(until)
	return course
}

// breakpoints returns the instants at which the slope of the level changes, in microseconds after s. If steps is
// true, the level jumps at these instants.
func (s *Snapshot) breakpoints(until int64, most int) (bends []int64, steps bool) {
	l, full := &s.Limit, s.fullAfter()
	switch l.Algorithm() {
	case AlgorithmSlidingWindow:
		return []int64{s.behind, saturatingAdd(l.p, s.behind), saturatingAdd(2*l.p, s.behind)}, false
	case AlgorithmSlidingLog, AlgorithmConcurrency:
		return []int64{full}, true
	case AlgorithmContinuous:
		return []int64{s.behind, full}, false
	}
	last := min(full, until)
	if s.spent == 0 || l.p <= 0 || last < s.behind {
		return nil, false
	}
	if l.hasCalendar() {
		now := s.at - Instant(s.behind)
		starts := l.almanac().Boundaries(nil, int64(s.at), int64(now)+last, most+1)
		if len(starts) > most+1 {
			return []int64{full}, false
		}
		for _, at := range starts[1:] {
			bends = append(bends, at-int64(now))
		}
		return bends, true
	}
	n := (last - s.behind) / l.p
	if n > int64(most) {
		return []int64{full}, false
	}
	for step := range n {
		bends = append(bends, s.behind+(step+1)*l.p)
	}
	return bends, true
}
