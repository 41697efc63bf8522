// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/metehq/mete/bucket"
)

// An admission is an amount of tokens that may be used from an instant on.
type admission struct{ at, cost int64 }

// checkBound checks guarantee G1 over all pairs of admissions: between them, at most capacity + rate·(t +
// slack) was admitted.
func checkBound(t *testing.T, l bucket.Limit, list []admission, slack int64) {
	t.Helper()
	n, p := l.Refill()
	for i := range list {
		sum := int64(0)
		for _, b := range list[i:] {
			sum += b.cost
			most := big.NewRat(int64(n), p)
			most.Mul(most, big.NewRat(b.at-list[i].at+slack, 1)).Add(most, big.NewRat(int64(l.Capacity()), 1))
			if big.NewRat(sum, 1).Cmp(most) > 0 {
				t.Fatalf("%v: %d thousandths admitted from %d to %d, at most %v", l, sum, list[i].at, b.at, most)
			}
		}
	}
}

// greedy returns a limit that is exhausted often, and a step of about the refill time of one cost.
func greedy(r *rand.Rand) (l bucket.Limit, cost func() int64, step func() int64) {
	for {
		l = randomLimit(r)
		full := l.TimeFor(l.Capacity()).Microseconds()
		if l.Capacity() > 0 && full < 1<<44 {
			return l, func() int64 { return 1 + r.Int64N(int64(l.Capacity())) }, func() int64 { return r.Int64N(full/8 + 2) }
		}
	}
}

// TestTake_NeverExceedsTheBound plays random schedules of callers with different clocks. The fastest clock
// measures the interval.
func TestTake_NeverExceedsTheBound(t *testing.T) {
	r, denied := random(7), 0
	for range 400 {
		l, cost, step := greedy(r)
		var s bucket.State
		var list []admission
		now, ahead := int64(1<<40), int64(0)
		for range 60 {
			at := now - step()*int64(r.IntN(2)) // half the callers are behind
			ahead = max(ahead, at)
			c, before := cost(), s
			var snap bucket.Snapshot
			if s, snap = l.Take(s, bucket.Instant(at), bucket.Tokens(c)); snap.Allowed {
				list = append(list, admission{ahead, c})
			} else if denied++; s != before {
				t.Fatalf("%v: denied %d at %d changed %+v to %+v", l, c, at, before, s)
			}
			now += step()
		}
		checkBound(t, l, list, 0)
	}
	if denied < 1000 {
		t.Errorf("%d denials: the schedules do not reach the bound", denied)
	}
}

// TestReserve_NeverExceedsTheBound counts a reservation at the start of its work. Waits are rounded up to a
// microsecond, so an interval between two starts may appear one microsecond too short.
func TestReserve_NeverExceedsTheBound(t *testing.T) {
	r := random(8)
	for range 400 {
		l, cost, step := greedy(r)
		var s bucket.State
		var list []admission
		now := int64(1 << 40)
		for range 60 {
			now += step()
			var snap bucket.Snapshot
			c := cost()
			if s, snap = l.Reserve(s, bucket.Instant(now), bucket.Tokens(c), far); !snap.Allowed {
				continue
			}
			at := now + snap.Wait().Microseconds()
			if len(list) > 0 && at < list[len(list)-1].at {
				t.Fatalf("%v: a reservation starts before the one in front of it", l)
			}
			list = append(list, admission{at, c})
		}
		checkBound(t, l, list, 1)
	}
}

// TestTake_ReachesTheBound: the bound is tight. A client that takes as early as possible gets all of it.
func TestTake_ReachesTheBound(t *testing.T) {
	r := random(9)
	for range 300 {
		l, _, _ := greedy(r)
		n, p := l.Refill()
		s, _ := l.Take(bucket.State{}, 0, l.Capacity())
		got := int64(0)
		for range 50 {
			later := bucket.Instant(got*p/int64(n)) + 1 // the first instant with one thousandth more
			room := l.Peek(s, later, 0, 0).Remaining()
			if want := bucket.Tokens(min(int64(later)*int64(n)/p-got, int64(l.Capacity()))); room != want {
				t.Fatalf("%v: %v there at %d, want %v", l, room, later, want)
			}
			var snap bucket.Snapshot
			if s, snap = l.Take(s, later, room); !snap.Allowed {
				t.Fatalf("%v: what is there (%v) is denied at %d", l, room, later)
			}
			if got += int64(room); int64(later)*int64(n)/p > got || later > 1<<50 {
				break // more than a capacity came at once
			}
		}
	}
}
