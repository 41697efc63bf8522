// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"encoding/binary"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
)

// A tape encodes the operations of a fuzz target. Each is a byte and three numbers: the time step, the cost and
// the wait.
type tape []byte

func (t *tape) number() int64 {
	n, size := binary.Varint(*t)
	if size <= 0 {
		*t = nil
		return 0
	}
	*t = (*t)[size:]
	return n
}

// taped returns the tape of operations of four numbers.
func taped(numbers ...int64) []byte {
	var t []byte
	for _, n := range numbers {
		t = binary.AppendVarint(t, n)
	}
	return t
}

// play plays at most 64 operations of the tape from an instant on. Operations from 8 on switch between the
// limits, which the oracle must support.
func (t tape) play(tt *testing.T, now int64, limits ...*oracleLimit) {
	var p pair
	o := limits[0]
	for i := 0; i < 64 && len(t) > 0; i++ {
		op, later, cost, wait := t.number()&15, t.number(), t.number(), t.number()
		if later < 1<<50 && later > -1<<50 {
			now = min(max(now+later, 0), 1<<52)
		}
		if op >= 8 && len(limits) > 1 {
			if o = limits[op%2]; p.oracle.beyond(o) {
				return
			}
		}
		wait = max(min(wait, 1<<52), -1<<52)
		if op&4 != 0 {
			wait = forced
		}
		switch op & 3 {
		case 0:
			p.giveBack(tt, o, now, cost)
		case 1:
			p.play(tt, o, now, cost, wait, false)
		default:
			p.play(tt, o, now, cost, wait, true)
		}
	}
}

// compiled returns the limit of s if it compiles and an oracle can simulate it.
func compiled(t *testing.T, s bucket.Spec) (*oracleLimit, bool) {
	o, err := oracleFor(s, "some key")
	if err != nil {
		if !errors.Is(err, bucket.ErrLimit) {
			t.Fatalf("%+v: %v, want ErrLimit", s, err)
		}
		return nil, false
	}
	most := o.limit.Capacity() + o.limit.MaxReserved()
	return o, s.Algorithm != bucket.AlgorithmStepped || most > 0 && o.limit.TimeFor(most) < far
}

func micros(us int64) time.Duration { return time.Duration(us%(1<<52)) * time.Microsecond }

func FuzzQueue(f *testing.F) {
	f.Add(int64(1000), int64(1000), int64(1e6), int64(5000), int64(1e15), taped(2, 0, 1000, 0, 2, 0, 1000, 0, 2, 5e5, 1000, 0, 0, 0, 500, 0))
	f.Add(int64(1), int64(7), int64(3), int64(1<<50), int64(0), taped(6, 0, 1<<50, 0, 3, -5, 1, 7))
	f.Fuzz(func(t *testing.T, capacity, tokens, per, queue, now int64, ops []byte) {
		rate := bucket.Rate{Tokens: bucket.Tokens(tokens), Per: micros(per)}
		if o, ok := compiled(t, bucket.Spec{Capacity: bucket.Tokens(capacity), Rate: rate, Queue: bucket.Tokens(queue)}); ok {
			tape(ops).play(t, now&(1<<52-1), o)
		}
	})
}

func FuzzStepped(f *testing.F) {
	f.Add(int64(20_000), int64(5000), int64(1e7), int64(0), uint8(0), int64(3e6), false, int64(1e15), taped(2, 0, 20_000, 0, 2, 9e6, 1000, 0, 2, 1e6, 1000, 0))
	f.Add(int64(5000), int64(5000), int64(1e7), int64(9000), uint8(2), int64(0), true, int64(7), taped(2, 3, 5000, 0, 2, 1e6, 9000, 0, 2, 1, 1, 2e7, 0, 1, 3, 0))
	f.Fuzz(func(t *testing.T, capacity, tokens, per, most int64, anchor uint8, start int64, queue bool, now int64, ops []byte) {
		s := bucket.Spec{
			Algorithm: bucket.AlgorithmStepped, Capacity: bucket.Tokens(capacity), Anchor: bucket.Anchor(anchor), Start: micros(start),
			Rate: bucket.Rate{Tokens: bucket.Tokens(tokens), Per: micros(per)},
		}
		if owed := bucket.Tokens(most); queue {
			s.Queue = owed
		} else {
			s.MaxReserved = &owed
		}
		if o, ok := compiled(t, s); ok {
			tape(ops).play(t, now&(1<<52-1), o)
		}
	})
}

func FuzzSlidingWindow(f *testing.F) {
	f.Add(int64(10_000), int64(60e6), false, int64(1e15), taped(2, 0, 10_000, 0, 2, 59e6, 1000, 0, 2, 7e6, 1000, 0))
	f.Add(int64(1<<41-1), int64(1<<47-1), true, int64(1<<50), taped(6, 0, 1<<40, 0, 2, 1<<46, 1<<39, 0, 0, 1, 5, 0))
	f.Fuzz(func(t *testing.T, tokens, per int64, none bool, now int64, ops []byte) {
		s := bucket.Spec{Algorithm: bucket.AlgorithmSlidingWindow, Rate: bucket.Rate{Tokens: bucket.Tokens(tokens), Per: micros(per)}}
		if none {
			s.MaxReserved = new(bucket.Tokens)
		}
		if o, ok := compiled(t, s); ok {
			tape(ops).play(t, now&(1<<52-1), o)
		}
	})
}

func FuzzSlidingLog(f *testing.F) {
	f.Add(int64(10_000), int64(60e6), false, int64(1e15), taped(2, 0, 3000, 0, 2, 5, 7000, 0, 2, 60e6-6, 1, 0, 2, 1, 3000, 0, 0, 0, 5000, 0))
	f.Add(int64(1), int64(1), true, int64(0), taped(6, 0, 1, 0, 2, 1, 1, 0))
	f.Fuzz(func(t *testing.T, tokens, per int64, none bool, now int64, ops []byte) {
		s := bucket.Spec{Algorithm: bucket.AlgorithmSlidingLog, Rate: bucket.Rate{Tokens: bucket.Tokens(tokens), Per: micros(per)}}
		if none {
			s.MaxReserved = new(bucket.Tokens)
		}
		if o, ok := compiled(t, s); ok {
			tape(ops).play(t, now&(1<<52-1), o)
		}
	})
}

// FuzzChangedAlgorithm switches between two limits of any kind with similar numbers.
func FuzzChangedAlgorithm(f *testing.F) {
	for i := range uint8(64) {
		f.Add(i, int64(10_000), int64(10_000), int64(1e7), int64(5000), int64(1e15),
			taped(10, 0, 9000, 0, 11, 3e6, 100, 0, 10, 1, 500, 0, 11, 1e7, 1000, 0, 9, 5, 5000, 0, 8, 1, 300, 0))
	}
	f.Fuzz(func(t *testing.T, which uint8, capacity, tokens, per, most, now int64, ops []byte) {
		var limits []*oracleLimit
		for _, i := range []uint8{which & 7, which >> 3 & 7} {
			s, owed := kinds[i].spec, bucket.Tokens(most)
			s.Capacity, s.Rate = bucket.Tokens(capacity), bucket.Rate{Tokens: bucket.Tokens(tokens), Per: micros(per)}
			switch {
			case s.Queue > 0:
				s.Queue = owed
			case s.Algorithm >= bucket.AlgorithmSlidingWindow:
				s.Capacity = 0
			default:
				s.MaxReserved = &owed
			}
			o, ok := compiled(t, s)
			if !ok {
				return
			}
			limits = append(limits, o)
			capacity, tokens = capacity/2+3, tokens/3+1
		}
		tape(ops).play(t, now&(1<<52-1), limits...)
	})
}

// FuzzAnyState reads any valid state, at any instant, under any limit. The answer and the next state must be valid.
func FuzzAnyState(f *testing.F) {
	for i := range uint8(len(kinds)) {
		f.Add(i, int64(1<<50), int64(1<<40), int64(1e9), int64(7), int64(1<<53-1), int64(1<<52), int64(-5e6), int64(1<<40), int64(0), int64(5), int64(math.MinInt64))
		f.Add(i, int64(1), int64(1), int64(1<<46), int64(1<<45), int64(1), int64(math.MaxInt64), int64(1), int64(0), int64(math.MinInt64), int64(1<<62), int64(1<<52))
	}
	f.Fuzz(func(t *testing.T, kind uint8, capacity, tokens, per, start, spent, asOf, unit, prev, now, cost, maxWait int64) {
		s := kinds[int(kind)%len(kinds)].spec
		s.Capacity, s.Rate = bucket.Tokens(capacity), bucket.Rate{Tokens: bucket.Tokens(tokens), Per: micros(per)}
		if s.Anchor == bucket.AnchorCalendar {
			s.Calendar = bucket.Calendar{Window: bucket.CalendarWindow(1 + uint64(per)%4), Zone: "Africa/Casablanca"}
			s.Rate.Per = s.Calendar.Window.Length()
		}
		if s.Algorithm == bucket.AlgorithmStepped && s.Anchor == bucket.AnchorEpoch {
			s.Start = micros(start)
		}
		l, _, err := s.Compile()
		if err != nil || spent < 0 || asOf < 0 || unit == math.MinInt64 {
			return
		}
		l = l.ForKey("some key")
		state := bucket.State{Spent: spent & (1<<53 - 1), AsOf: bucket.Instant(asOf), Unit: unit}
		if unit < 0 { // what a sliding window may have written
			state.Prev, state.Spent = prev&(1<<40-1), prev&(1<<40-1)+spent&(1<<41-1)
		}
		for range 3 {
			before := state
			var snap bucket.Snapshot
			state, snap = l.Reserve(before, bucket.Instant(now), bucket.Tokens(cost), time.Duration(maxWait))
			checkInvariants(t, l, before, state)
			if snap.Allowed != (snap.RetryAfter == 0) || snap.RetryAfter < 0 || snap.FullAfter() < 0 || snap.Wait() < 0 ||
				snap.Remaining() < 0 || snap.Remaining() > l.Capacity() || !snap.Allowed && state != before {
				t.Fatalf("%v, %+v at %d, cost %d, wait %d: %+v %+v", l, before, now, cost, maxWait, state, answerOf(snap))
			}
			before, state = state, l.Refund(state, bucket.Instant(now), bucket.Tokens(cost))
			checkInvariants(t, l, before, state)
			now, cost, maxWait = now/2+asOf/2, cost/3, 0
		}
	})
}
