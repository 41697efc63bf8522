// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
)

// kinds are all kinds of limits, without numbers.
var kinds = []struct {
	name string
	spec bucket.Spec // a nonzero Queue means a queue
}{
	{"token bucket", bucket.Spec{}},
	{"leaky bucket", bucket.Spec{Queue: 1}},
	{"stepped from the epoch", bucket.Spec{Algorithm: bucket.AlgorithmStepped}},
	{"stepped by key", bucket.Spec{Algorithm: bucket.AlgorithmStepped, Anchor: bucket.AnchorKey}},
	{"stepped from the first", bucket.Spec{Algorithm: bucket.AlgorithmStepped, Anchor: bucket.AnchorFirst}},
	{"stepped with a queue", bucket.Spec{Algorithm: bucket.AlgorithmStepped, Anchor: bucket.AnchorFirst, Queue: 1}},
	{"sliding window", bucket.Spec{Algorithm: bucket.AlgorithmSlidingWindow}},
	{"sliding log", bucket.Spec{Algorithm: bucket.AlgorithmSlidingLog}},
	{"calendar", bucket.Spec{Algorithm: bucket.AlgorithmStepped, Anchor: bucket.AnchorCalendar}},
}

// eachKind runs f for every kind of limit with its own random numbers.
func eachKind(t *testing.T, f func(t *testing.T, r *rand.Rand, kind bucket.Spec)) {
	for i, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) { f(t, random(100+uint64(i)), kind.spec) })
	}
}

// randomPer returns a period between a microsecond and most.
func randomPer(r *rand.Rand, most int64) time.Duration {
	units := []int64{1, 1000, 1e6, 60e6, 3600e6, 86400e6}
	for {
		us := (1 + upTo(r, 100)) * units[r.IntN(len(units))]
		if r.IntN(4) == 0 {
			us = 1 + upTo(r, most)
		}
		if us <= most {
			return time.Duration(us) * time.Microsecond
		}
	}
}

// randomOf returns a limit of this kind that its oracle can simulate.
func randomOf(r *rand.Rand, kind bucket.Spec) *oracleLimit {
	for {
		s := kind
		s.Rate = bucket.Rate{Tokens: bucket.Tokens(1 + upTo(r, 1<<40)), Per: randomPer(r, 1<<46)}
		if s.Anchor == bucket.AnchorCalendar {
			tables, _ := readCalendars()
			s.Calendar = tables[r.IntN(len(tables))].calendar
			s.Rate.Per = s.Calendar.Window.Length()
		}
		switch s.Algorithm {
		case bucket.AlgorithmContinuous:
			s.Capacity = bucket.Tokens(upTo(r, 1<<40))
		case bucket.AlgorithmStepped: // full after 50 beginnings at most
			s.Capacity = bucket.Tokens(r.Int64N(20*int64(s.Rate.Tokens) + 2))
			if r.IntN(3) == 0 {
				s.Capacity = s.Rate.Tokens // a fixed window
			}
			if s.Anchor == bucket.AnchorEpoch {
				s.Start = time.Duration(r.Int64N(s.Rate.Per.Microseconds())) * time.Microsecond
			}
		case bucket.AlgorithmSlidingLog:
			s.Rate.Tokens = 1 + bucket.Tokens(upTo(r, int64(bucket.MaxLogTokens)-1))
		}
		most := bucket.Tokens(upTo(r, 30*int64(s.Rate.Tokens)))
		switch {
		case s.Queue > 0:
			s.Queue = 1 + most
		case s.Algorithm < bucket.AlgorithmSlidingWindow && r.IntN(3) > 0 || s.Algorithm == bucket.AlgorithmStepped:
			s.MaxReserved = &most
		case s.Algorithm >= bucket.AlgorithmSlidingWindow && r.IntN(3) > 0:
			s.MaxReserved = new(bucket.Tokens)
		}
		if o, err := oracleFor(s, fmt.Sprintf("key %d", r.IntN(1000))); err == nil && s.Capacity+most > 0 {
			return o
		}
	}
}

// walk returns an instant after now at a distance that suits the limit, sometimes before now or far after.
func walk(r *rand.Rand, o *oracleLimit, now int64) int64 {
	_, p := o.limit.Refill()
	switch r.IntN(20) {
	case 0:
		return now - upTo(r, min(3*p, now))
	case 1:
		return upTo(r, now)
	case 2:
		return now + upTo(r, 1<<50)
	case 3: // the very beginning of an interval or a window, or just before
		if o.starts != nil {
			i, _ := slices.BinarySearch(o.starts, now)
			return o.starts[i] - int64(r.IntN(2))
		}
		return floorTo(now, o.start, p) + p - int64(r.IntN(2))
	case 4, 5, 6, 7, 8:
		return now
	case 9, 10, 11:
		return now + upTo(r, 2*p)
	}
	return now + upTo(r, o.limit.TimeFor(o.limit.Capacity()/4+1).Microseconds())
}

func price(r *rand.Rand, o *oracleLimit) int64 {
	if r.IntN(2) == 0 {
		return upTo(r, int64(o.limit.Capacity())/3+1)
	}
	return randomCost(r, o.limit)
}

func patience(r *rand.Rand, o *oracleLimit) int64 {
	if r.IntN(8) == 0 {
		return forced
	}
	return randomWait(r, o.limit)
}

// random executes one random operation on a pair.
func (p *pair) random(t *testing.T, r *rand.Rand, o *oracleLimit, now int64) {
	t.Helper()
	switch r.IntN(10) {
	case 0:
		p.giveBack(t, o, now, price(r, o))
	case 1, 2:
		p.play(t, o, now, price(r, o), patience(r, o), false)
	default:
		p.play(t, o, now, price(r, o), patience(r, o), true)
	}
}

func TestEveryAlgorithm_AgreesWithItsOracle(t *testing.T) {
	eachKind(t, func(t *testing.T, r *rand.Rand, kind bucket.Spec) {
		for range 600 {
			var p pair
			o, now := randomOf(r, kind), upTo(r, 1<<51)
			for range 40 {
				if now = walk(r, o, now); now > 1<<52 {
					p, now = pair{}, upTo(r, 1<<51)
				}
				p.random(t, r, o, now)
			}
		}
	})
}

// beyond reports whether the bucket is full only after the longest wait.
func (o *oracle) beyond(l *oracleLimit) bool {
	return l.limit.Algorithm() == bucket.AlgorithmStepped && l.limit.TimeFor(bucket.Tokens(o.carried(l).Num().Int64())) > far
}

// TestChangedAlgorithm_AgreesWithTheOracle replaces the limit by one of any kind, and back, during a history.
func TestChangedAlgorithm_AgreesWithTheOracle(t *testing.T) {
	r := random(120)
	for range 3000 {
		var p pair
		limits := []*oracleLimit{
			randomOf(r, kinds[r.IntN(len(kinds))].spec), randomOf(r, kinds[r.IntN(len(kinds))].spec),
		}
		o, now := limits[0], upTo(r, 1<<50)
		for range 30 {
			if r.IntN(4) == 0 {
				if o = limits[r.IntN(2)]; p.oracle.beyond(o) {
					p = pair{}
				}
			}
			now = min(walk(r, o, now), 1<<52)
			p.random(t, r, o, now)
		}
	}
}
