// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
)

// limit compiles a valid limit.
func limit(t testing.TB, capacity, rate string, maxReserved ...bucket.Tokens) bucket.Limit {
	t.Helper()
	c, err := bucket.ParseTokens(capacity)
	if err != nil {
		t.Fatal(err)
	}
	r, err := bucket.ParseRate(rate)
	if err != nil {
		t.Fatal(err)
	}
	s := bucket.Spec{Capacity: c, Rate: r}
	if len(maxReserved) > 0 {
		s.MaxReserved = &maxReserved[0]
	}
	l, _, err := s.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestZeroLimit_HoldsNothing(t *testing.T) {
	var l bucket.Limit
	for _, s := range []bucket.State{{}, {Spent: 5}, {Spent: 5, Unit: 7}, {Spent: math.MaxInt64, AsOf: 9, Unit: 1}} {
		if _, snap := l.Take(s, 10, 1); snap.Allowed || snap.RetryAfter != bucket.Never || snap.Remaining() != 0 || snap.FullAfter() != 0 {
			t.Errorf("%+v: take of a thousandth: %+v, want never", s, answerOf(snap))
		}
		if _, snap := l.Reserve(s, 10, 1, bucket.Never); snap.Allowed || snap.RetryAfter != bucket.Never {
			t.Errorf("%+v: reservation of a thousandth: %+v, want never", s, answerOf(snap))
		}
		if snap := l.Peek(s, 10, 0, time.Hour); !snap.Allowed || snap.Wait() != 0 {
			t.Errorf("%+v: peek at nothing: %+v, want allowed", s, answerOf(snap))
		}
		if !l.Full(l.Refund(s, 10, math.MaxInt64), 10) {
			t.Errorf("%+v: not full after a refund", s)
		}
	}
}

func TestTake_CostsThatNeverFit(t *testing.T) {
	l := limit(t, "10", "1/1s")
	for _, cost := range []bucket.Tokens{-1, math.MinInt64, 10_001, bucket.MaxTokens, math.MaxInt64} {
		before := bucket.State{Spent: 5_000_000, AsOf: 100, Unit: 1000}
		s, snap := l.Take(before, 100, cost)
		if snap.Allowed || snap.RetryAfter != bucket.Never || s != before || snap.Remaining() != 5000 {
			t.Errorf("cost %d: %+v, %+v; want never and the state as it was", int64(cost), s, answerOf(snap))
		}
	}
}

func TestTake_InstantsAtTheEdges(t *testing.T) {
	l := limit(t, "10", "1/1s")
	empty, _ := l.Take(bucket.State{}, 1<<50, 10_000)
	for _, now := range []bucket.Instant{math.MinInt64, math.MinInt64 + 1, -1 << 53, -1, 0, 1} {
		s, snap := l.Take(empty, now, 1)
		if snap.Allowed || s != empty || snap.RetryAfter < 1<<50*time.Microsecond || snap.RetryAfter == bucket.Never {
			t.Errorf("at %d: %+v, %+v; want a wait of more than the step back", int64(now), s, answerOf(snap))
		}
		if snap.FullAfter() < snap.RetryAfter {
			t.Errorf("at %d: full after %v, before %v", int64(now), snap.FullAfter(), snap.RetryAfter)
		}
		if s, snap := l.Take(bucket.State{}, now, 10_000); !snap.Allowed || s.AsOf < 0 {
			t.Errorf("at %d: a full bucket: %+v, %+v; want admitted, at the epoch at least", int64(now), s, answerOf(snap))
		}
	}
	for _, now := range []bucket.Instant{math.MinInt64, math.MinInt64 + 1} { // the difference leaves 64 bits
		if got := l.Peek(empty, now, 1, 0).RetryAfter; got != bucket.LongestWait {
			t.Errorf("at %d: wait %v, want the longest below never: %v", int64(now), got, bucket.LongestWait)
		}
	}
	for _, now := range []bucket.Instant{1<<50 + 10e6, 1<<53 - 1, 1 << 60, math.MaxInt64} {
		if s, snap := l.Take(empty, now, 10_000); !snap.Allowed || s.AsOf != now {
			t.Errorf("at %d: %+v, %+v; want all of a full bucket", int64(now), s, answerOf(snap))
		}
	}
}

func TestReserve_WaitsAtTheEdges(t *testing.T) {
	l := limit(t, "1", "1/1s")
	empty, _ := l.Take(bucket.State{}, 0, 1000)
	for _, tt := range []struct {
		wait time.Duration
		ok   bool
	}{
		{math.MinInt64 + 1, false},
		{bucket.Forced, true},
		{-1, false},
		{0, false},
		{999, false}, // less than a microsecond is none
		{time.Second - 1, false},
		{time.Second, true},
		{bucket.Never, true},
	} {
		if _, snap := l.Reserve(empty, 0, 1000, tt.wait); snap.Allowed != tt.ok {
			t.Errorf("longest wait %v: allowed %v, want %v", tt.wait, snap.Allowed, tt.ok)
		}
	}
}

func TestSpend_IsReserveInBrief(t *testing.T) {
	r := random(11)
	for range 4000 {
		l := randomLimit(r)
		s, now := used(l, r, func() int64 { return randomCost(r, l) }, func(now int64) int64 { return randomStep(r, l, now) }, 1<<40)
		cost, wait := bucket.Tokens(randomCost(r, l)), time.Duration(randomWait(r, l))*time.Microsecond
		peeked := l.Peek(s, bucket.Instant(now), cost, wait)
		next, want := l.Reserve(s, bucket.Instant(now), cost, wait)
		_, snap := l.Reserve(s, 0, 7, 0) // Show fills in all of a used snapshot
		after, v := l.Spend(s, bucket.Instant(now), cost, wait)
		if v.Show(&snap, &l, cost, bucket.Instant(now)); after != next || snap != want || v.Allowed() != want.Allowed {
			t.Fatalf("%v, %+v at %d, cost %v, wait %v: Spend %+v %+v, Reserve %+v %+v", l, s, now, cost, wait, after, snap, next, want)
		}
		if peeked.Allowed != want.Allowed || peeked.RetryAfter != want.RetryAfter {
			t.Fatalf("%v, %+v at %d, cost %v, wait %v: peek %+v, take %+v", l, s, now, cost, wait, peeked, want)
		}
	}
}

func TestRefund_Edges(t *testing.T) {
	l := limit(t, "10", "1/1s")
	spent, _ := l.Take(bucket.State{}, 100, 10_000)
	for _, amount := range []bucket.Tokens{0, -1, math.MinInt64} {
		if got := l.Refund(spent, 200, amount); got != spent {
			t.Errorf("refund of %d: %+v, want the state as it was: %+v", int64(amount), got, spent)
		}
	}
	for _, amount := range []bucket.Tokens{10_000, bucket.MaxTokens, math.MaxInt64} {
		if got := l.Refund(spent, 100, amount); !l.Full(got, 100) {
			t.Errorf("refund of %d: %+v, want full", int64(amount), got)
		}
	}
}

func TestState_WithoutAUnitCountsThousandths(t *testing.T) {
	l := limit(t, "10", "1/1s")
	if got := l.Peek(bucket.State{Spent: 4000, AsOf: 5}, 5, 0, 0).Remaining(); got != 6000 {
		t.Errorf("4000 thousandths missing of 10: %v remaining, want 6", got)
	}
}

func TestChangedLimit_IsNeverBelowItsBounds(t *testing.T) {
	wide, narrow := limit(t, "100", "1/1s"), limit(t, "10", "1/1s", 2000)
	empty, _ := wide.Take(bucket.State{}, 0, 100_000)
	if got := narrow.Peek(empty, 0, 0, 0).RetryAfter; got != 2*time.Second {
		t.Errorf("lowered from 100 to 10 with a debt of 2 at most: %v to an empty bucket, want 2s", got)
	}
	if got := narrow.Peek(empty, 95e6, 0, 0).Remaining(); got != 5000 {
		t.Errorf("95 s later: %v, want what is missing kept: 5 remaining", got)
	}
}

func TestTakeAll_AppendsASnapshotForEach(t *testing.T) {
	a, b := limit(t, "10", "1/1s"), limit(t, "1", "1/1m")
	states := make([]bucket.State, 2)
	charges := []bucket.Charge{{Limit: a, Cost: 3000}, {Limit: b, Cost: 1000}}
	dst, ok := bucket.TakeAll(make([]bucket.Snapshot, 1, 8), states, charges, 0, 0)
	if !ok || len(dst) != 3 || dst[0] != (bucket.Snapshot{}) || dst[1].Remaining() != 7000 || dst[2].Remaining() != 0 {
		t.Fatalf("first: %v, %+v", ok, dst)
	}
	before := slices.Clone(states)
	dst, ok = bucket.TakeAll(dst[:0], states, charges, 0, 0)
	if ok || !slices.Equal(states, before) || !dst[0].Allowed || dst[0].Remaining() != 7000 || dst[1].Allowed {
		t.Errorf("second: %v, %+v, states %+v; want denied by the second bucket only, uncharged", ok, dst, states)
	}
	if dst, ok = bucket.TakeAll(nil, nil, nil, 0, 0); !ok || len(dst) != 0 {
		t.Errorf("no charges: %v, %+v; want allowed", ok, dst)
	}
}

func TestInstant(t *testing.T) {
	at := time.Date(2026, 3, 4, 5, 6, 7, 123_456_789, time.FixedZone("", 3600))
	i := bucket.At(at)
	if want := at.Truncate(time.Microsecond); !i.Time().Equal(want) || i.Time().Location() != time.UTC {
		t.Errorf("At(%v).Time() = %v, want %v in UTC", at, i.Time(), want)
	}
	if got := i.Add(1999); got != i+1 {
		t.Errorf("%d.Add(1999ns) = %d, want one microsecond on", i, got)
	}
	if got := bucket.At(time.Time{}); got >= 0 {
		t.Errorf("At of the zero time is %d, want before the epoch", got)
	}
}
