// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"math"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
)

// longestSteps is a stepped limit with an empty bucket. Its tokens arrive one per 35 years.
func longestSteps(t *testing.T) (bucket.Limit, bucket.State) {
	t.Helper()
	l, _, err := bucket.Spec{
		Algorithm: bucket.AlgorithmStepped, Capacity: bucket.MaxTokens / 2,
		Rate: bucket.Rate{Tokens: bucket.Token, Per: (1<<50 - 1) * time.Microsecond},
	}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	s, snap := l.Take(bucket.State{}, 0, l.Capacity())
	if !snap.Allowed {
		t.Fatalf("a full bucket denies its capacity: %+v", snap)
	}
	return l, s
}

// No maxWait admits a reservation with tokens after LongestWait.
func TestLongest_ReservationsEndThere(t *testing.T) {
	l, s := longestSteps(t)
	_, p := l.Refill()
	for _, maxWait := range []time.Duration{bucket.LongestWait, bucket.LongestWait + time.Microsecond, bucket.Never - 1, bucket.Never} {
		for _, now := range []bucket.Instant{0, 1, bucket.Instant(p - 1)} {
			for _, tokens := range []int64{8, 9, 10, 100, 1e12} {
				snap := l.Peek(s, now, bucket.Tokens(tokens)*bucket.Token, maxWait)
				if want := tokens == 8 || tokens == 9 && now > bucket.Instant(p/8); snap.Allowed != want {
					t.Errorf("%d tokens at %d, which come %d intervals after 0, within %v: allowed %v, want %v",
						tokens, now, tokens, maxWait, snap.Allowed, want)
				}
				if snap.RetryAfter < 0 || !snap.Allowed && snap.RetryAfter == 0 || snap.RetryAfter > bucket.LongestWait {
					t.Errorf("%d tokens at %d: retry after %d", tokens, now, snap.RetryAfter)
				}
			}
		}
	}
}

// The RetryAfter of a denied reservation is exact (G3), even with tokens after LongestWait.
func TestLongest_RetryAfterOfAReservationIsExact(t *testing.T) {
	l, s := longestSteps(t)
	for _, now := range []bucket.Instant{0, 12345} {
		denied := l.Peek(s, now, 9*bucket.Token, bucket.Never)
		then := now.Add(denied.RetryAfter)
		if denied.Allowed || l.Peek(s, then-1, 9*bucket.Token, bucket.Never).Allowed || !l.Peek(s, then, 9*bucket.Token, bucket.Never).Allowed {
			t.Errorf("at %d: %+v, which is not exact", now, denied)
		}
		if wait := l.Peek(s, then, 9*bucket.Token, bucket.Never).RefillAfter(9 * bucket.Token); wait != bucket.LongestWait {
			t.Errorf("reserved for %v on, want %v", wait, bucket.LongestWait)
		}
	}
}

// An instant at the smallest value is not within an interval: the distance overflows 64 bits.
func TestLongest_ReservationsBeforeAllTime(t *testing.T) {
	l, _, err := bucket.Spec{Algorithm: bucket.AlgorithmStepped, Capacity: bucket.Token, Rate: bucket.PerSecond(bucket.Token)}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	s, _ := l.Take(bucket.State{}, 1<<52, bucket.Token)
	for _, now := range []bucket.Instant{math.MinInt64, math.MinInt64 + 1, -1 << 60} {
		for _, maxWait := range []time.Duration{time.Microsecond, time.Second - time.Microsecond} {
			if snap := l.Peek(s, now, bucket.Token, maxWait); snap.Allowed || snap.RetryAfter != bucket.LongestWait {
				t.Errorf("at %d within %v: allowed %v, retry after %v; want denied, %v", int64(now), maxWait, snap.Allowed, snap.RetryAfter, bucket.LongestWait)
			}
		}
	}
}

// Every method caps durations at LongestWait.
func TestLongest_IsShown(t *testing.T) {
	l, s := longestSteps(t)
	snap := l.Peek(s, 0, l.Capacity(), 0)
	_, forced := l.Reserve(s, 0, bucket.Token, bucket.Forced)
	for name, got := range map[string]time.Duration{
		"RetryAfter": snap.RetryAfter, "FullAfter": snap.FullAfter(), "Earliest": snap.RefillAfter(l.Capacity()),
		"RoomAfter": snap.RoomAfter(l.Capacity()), "TimeFor": l.TimeFor(l.Capacity()), "Row": bucket.Row{{Limit: l, State: s}}.FullAfter(0),
		"FullAfter of a debt": forced.FullAfter(),
	} {
		if got != bucket.LongestWait {
			t.Errorf("%s: %v, want %v", name, got, bucket.LongestWait)
		}
	}
	if l.Peek(s, 0, l.Capacity()+1, 0).RetryAfter != bucket.Never {
		t.Error("a cost above the capacity has a wait, want never")
	}
}

// Later counts down from the exact wait, not from the capped one.
func TestLongest_LaterCountsFromTheWait(t *testing.T) {
	steps, spent := longestSteps(t)
	continuous := limit(t, "0", "0.003/1h")
	for _, tt := range []struct {
		name string
		l    bucket.Limit
		s    bucket.State
		cost bucket.Tokens
	}{
		{"a clock that has gone back", continuous, bucket.State{Spent: 9007197600000000, AsOf: 1 << 50, Unit: 1200000000}, 0},
		{"stepped", steps, spent, 20 * bucket.Token},
		{"stepped, for ages", steps, spent, steps.Capacity()},
	} {
		seen := tt.l.Peek(tt.s, 0, tt.cost, 0)
		if seen.RetryAfter != bucket.LongestWait {
			t.Fatalf("%s: %v, want a wait that is cut", tt.name, seen.RetryAfter)
		}
		for _, later := range []bucket.Instant{1, 1e6, 1 << 50, 1 << 52} {
			got, want := seen.After(time.Duration(later)*time.Microsecond), tt.l.Peek(tt.s, later, tt.cost, 0)
			if got.RetryAfter != want.RetryAfter || got.FullAfter() != want.FullAfter() || got.Allowed != want.Allowed {
				t.Errorf("%s, %d µs later: retry after %v, full after %v; want %v, %v", tt.name, later,
					got.RetryAfter, got.FullAfter(), want.RetryAfter, want.FullAfter())
			}
			twice := seen.After(time.Duration(later/2) * time.Microsecond).After(time.Duration(later-later/2) * time.Microsecond)
			if twice.RetryAfter != want.RetryAfter {
				t.Errorf("%s, %d µs later in two steps: retry after %v, want %v", tt.name, later, twice.RetryAfter, want.RetryAfter)
			}
		}
	}
}

// Shards that are full after LongestWait have a wait other than never.
func TestLongest_ShardsHaveAWait(t *testing.T) {
	l := limit(t, "9000000000000", "1000/1s") // n = p = 1
	shards, free := bucket.Shards{}, bucket.Shards{}
	for i := range 2 {
		part, err := l.Shard(i, 2)
		if err != nil {
			t.Fatal(err)
		}
		s, _ := part.Take(bucket.State{}, 1<<50, part.Capacity())
		shards, free = append(shards, part.Peek(s, 0, 0, 0)), append(free, part.Peek(s, 1<<50, 0, 0))
	}
	if got := free.Merge(l, l.Capacity(), 0); got.RetryAfter != 9e15*time.Microsecond || got.FullAfter() != got.RetryAfter {
		t.Errorf("both shards are empty: retry after %v, full after %v, want 9e15 µs", got.RetryAfter, got.FullAfter())
	}
	got := shards.Merge(l, l.Capacity(), 0)
	if got.RetryAfter != bucket.LongestWait || got.FullAfter() != bucket.LongestWait {
		t.Errorf("as seen by a clock that has gone back: retry after %v, full after %v, want %v", got.RetryAfter, got.FullAfter(), bucket.LongestWait)
	}
	if later := got.After((1 << 50) * time.Microsecond); later.RetryAfter != 9e15*time.Microsecond || later.FullAfter() != later.RetryAfter {
		t.Errorf("when that is over: retry after %v, full after %v, want 9e15 µs", later.RetryAfter, later.FullAfter())
	}
}
