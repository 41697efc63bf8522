// SPDX-License-Identifier: Apache-2.0

package memstore_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// take takes cost from the bucket of one key.
func take(tb testing.TB, s *memstore.Store, key string, l bucket.Limit, cost bucket.Tokens) bucket.Snapshot {
	tb.Helper()
	snaps, allowed, err := s.Take(context.Background(), nil, []store.Charge{{Key: key, Limit: l, Cost: cost}}, mete.Mode{})
	if err != nil || allowed != snaps[0].Allowed {
		tb.Fatalf("take %q: allowed %v, snapshot %v, error %v", key, allowed, snaps[0].Allowed, err)
	}
	return snaps[0]
}

func TestNew_RefusesBadBounds(t *testing.T) {
	for _, keys := range []int{-1, math.MinInt} {
		if _, err := memstore.New(memstore.Config{MaxKeys: keys}); err == nil {
			t.Errorf("New accepted MaxKeys %d", keys)
		}
	}
	if got := mustNew(t, memstore.Config{}).Stats().MaxKeys; got != memstore.DefaultMaxKeys {
		t.Errorf("default bound is %d, want %d", got, memstore.DefaultMaxKeys)
	}
}

// G11: a flood of keys neither evicts a limited client nor exceeds the bound.
func TestStore_FloodForgetsNobody(t *testing.T) {
	for _, maxKeys := range []int{1, 10, 1000, 20_000} {
		t.Run(fmt.Sprint(maxKeys), func(t *testing.T) {
			clock := storetest.NewClock()
			s := mustNew(t, memstore.Config{MaxKeys: maxKeys, Now: clock.Now})
			slow := mustLimit(t, 3*bucket.Token, 1) // 3,000 seconds until full
			victims := max(maxKeys/2, 1)
			for i := range victims {
				take(t, s, fmt.Sprintf("victim%d", i), slow, 3*bucket.Token)
			}
			for i := range 4*maxKeys + 1000 {
				clock.Advance(10)
				take(t, s, fmt.Sprintf("flood%d", i), slow, bucket.Token)
			}
			for i := range victims {
				if take(t, s, fmt.Sprintf("victim%d", i), slow, bucket.Token).Allowed {
					t.Fatalf("victim %d was forgotten", i)
				}
			}
			stats := s.Stats()
			if most := int64(maxKeys) + 1; stats.Keys > most { // and one overflow bucket
				t.Errorf("%d buckets are kept, want at most %d", stats.Keys, most)
			}
			if stats.Overflowed == 0 {
				t.Error("no take was counted as overflowed")
			}
		})
	}
}

// At the bound, new keys share one bucket per limit, and it limits.
func TestStore_OverflowBucketLimits(t *testing.T) {
	clock := storetest.NewClock()
	s := mustNew(t, memstore.Config{MaxKeys: 100, Now: clock.Now})
	slow, other := mustLimit(t, 5*bucket.Token, 1), mustLimit(t, 7*bucket.Token, 1)
	for i := range 100 {
		take(t, s, fmt.Sprintf("old%d", i), slow, bucket.Token)
	}
	admitted := map[bucket.Limit]int{}
	for i := range 50 {
		for _, l := range []bucket.Limit{slow, other} {
			if take(t, s, fmt.Sprintf("new%d", i), l, bucket.Token).Allowed {
				admitted[l]++
			}
		}
	}
	if got := s.Stats().Overflowed; got != 100 {
		t.Errorf("%d takes are counted as overflowed, want 100: denials count", got)
	}
	if admitted[slow] != 5 || admitted[other] != 7 {
		t.Errorf("overflow buckets of 5 and 7 admitted %d and %d", admitted[slow], admitted[other])
	}
	// Several charges with the same overflow bucket see each other.
	clock.Advance(5_000_000_000)
	for i := range 100 {
		take(t, s, fmt.Sprintf("old%d", i), slow, bucket.Token)
	}
	take(t, s, "last", slow, 1) // takes the one place that may be left
	charges := []store.Charge{{Key: "x", Limit: slow, Cost: 3 * bucket.Token}, {Key: "y", Limit: slow, Cost: 3 * bucket.Token}}
	snaps, allowed, err := s.Take(t.Context(), nil, charges, mete.Mode{})
	if allowed || err != nil || snaps[0].Remaining() < 5*bucket.Token-1 {
		t.Errorf("3 and 3 from a shared bucket of 5: allowed %v (error %v), first shown with %v; want denied and 5, or almost",
			allowed, err, snaps[0].Remaining())
	}
}

// A key that leaves the overflow bucket takes its deficit along, so that two buckets never yield more than the
// limit.
func TestStore_LeavingOverflowForgivesNothing(t *testing.T) {
	clock := storetest.NewClock()
	s := mustNew(t, memstore.Config{MaxKeys: 10, Now: clock.Now})
	quick, slow := mustLimit(t, bucket.Token, 1000*bucket.Token), mustLimit(t, 5*bucket.Token, 1)
	for i := range 10 {
		take(t, s, fmt.Sprintf("quick%d", i), quick, bucket.Token) // full again in 1 ms
	}
	admitted := 0
	for i := range 100 {
		if take(t, s, "key", slow, bucket.Token).Allowed {
			admitted++
		}
		if i == 3 {
			clock.Advance(1_000_000) // now there is room
		}
	}
	if admitted != 5 {
		t.Errorf("a key that began in the overflow bucket was admitted %d times, want 5", admitted)
	}
}

// Full buckets make room without a loss and without a sweep by the caller.
func TestStore_FullBucketsMakeRoom(t *testing.T) {
	clock := storetest.NewClock()
	s := mustNew(t, memstore.Config{MaxKeys: 5000, Now: clock.Now})
	quick := mustLimit(t, bucket.Token, bucket.Token)
	for round := range 10 {
		for i := range 5000 {
			take(t, s, fmt.Sprintf("round%d:%d", round, i), quick, bucket.Token)
		}
		clock.Advance(int64(time.Minute / time.Microsecond))
	}
	if stats := s.Stats(); stats.Overflowed > 50_000/100 || stats.Keys > 5001 {
		t.Errorf("%d of 50000 takes of new keys overflowed though all buckets were full; %d kept", stats.Overflowed, stats.Keys)
	}
}

// Every bucket survives growth, also under concurrency.
func TestStore_GrowthLosesNothing(t *testing.T) {
	const keys, workers = 20_000, 4
	s := mustNew(t, memstore.Config{MaxKeys: 100_000})
	l := mustLimit(t, 3*bucket.Token, 1)
	var admitted atomic.Int64
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for _, i := range rand.New(testseed.PCG(uint64(w), 1)).Perm(keys) {
				for range 2 {
					if take(t, s, fmt.Sprintf("key%d", i), l, bucket.Token).Allowed {
						admitted.Add(1)
					}
				}
			}
		})
	}
	wg.Wait()
	if got := admitted.Load(); got != 3*keys {
		t.Errorf("%d takes of %d keys with 3 tokens each were admitted, want %d", got, keys, 3*keys)
	}
	if got := s.Stats().Keys; got != keys {
		t.Errorf("%d buckets are kept, want %d", got, keys)
	}
}

// Lock-free takes of one bucket run concurrently with locked takes of several buckets, refunds and limit
// changes on the same buckets.
func TestStore_MixedPathsConserve(t *testing.T) {
	s := mustNew(t, memstore.Config{})
	limits := []bucket.Limit{mustLimit(t, 1000*bucket.Token, 1), mustLimit(t, 1000*bucket.Token, 2)}
	keys := []string{"a", "b", "c"}
	var spent [3]atomic.Int64
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			r := rand.New(testseed.PCG(uint64(w), 9))
			for range 2000 {
				l, i := limits[r.IntN(10)/9], r.IntN(3)
				switch r.IntN(4) {
				case 0:
					charges := []store.Charge{{Key: "a", Limit: l, Cost: 300}, {Key: "b", Limit: l, Cost: 300}, {Key: "c", Limit: l, Cost: 300}}
					if _, allowed, _ := s.Take(t.Context(), nil, charges, mete.Mode{}); allowed {
						for j := range spent {
							spent[j].Add(300)
						}
					}
				case 1:
					if spent[i].Add(-100) < 0 { // refund only spent tokens
						spent[i].Add(100)
						continue
					}
					s.Refund(t.Context(), storetest.Refunds(store.Charge{Key: keys[i], Limit: l, Cost: 100}), "")
				default:
					if take(t, s, keys[i], l, 200).Allowed {
						spent[i].Add(200)
					}
				}
			}
		})
	}
	wg.Wait()
	for i, key := range keys {
		snaps, _, _ := s.Take(t.Context(), nil, []store.Charge{{Key: key, Limit: limits[0]}}, mete.Mode{DryRun: true})
		want := 1000*bucket.Token - bucket.Tokens(spent[i].Load())
		// A limit change rounds the missing amount up to a thousandth, and a second of the test refills a
		// thousandth or two.
		if got := snaps[0].Remaining(); got < want-2000 || got > want+100 {
			t.Errorf("bucket %q holds %v, want %v", key, got, want)
		}
	}
}

// Limits with a state that soon overflows one word use another path with the same numbers.
func TestStore_FastRefill(t *testing.T) {
	clock := storetest.NewClock()
	s := mustNew(t, memstore.Config{Now: clock.Now})
	l := mustLimit(t, 1_000_000*bucket.Token, 12_345_678) // 6172839 thousandths every 500000 µs
	for _, ahead := range []time.Duration{0, time.Second, time.Hour, 24 * time.Hour, 365 * 24 * time.Hour, 20 * 365 * 24 * time.Hour} {
		clock.Advance(int64(ahead / time.Microsecond))
		if snap := take(t, s, "k", l, 1_000_000*bucket.Token); !snap.Allowed || snap.Remaining() != 0 {
			t.Fatalf("after %v: allowed %v, %v left; want allowed, 0", ahead, snap.Allowed, snap.Remaining())
		}
		snap := take(t, s, "k", l, 1_000_000*bucket.Token)
		if want := l.TimeFor(1_000_000 * bucket.Token); snap.Allowed || snap.RetryAfter != want {
			t.Fatalf("after %v: allowed %v, retry after %v; want denied, %v", ahead, snap.Allowed, snap.RetryAfter, want)
		}
		clock.Advance(int64(snap.RetryAfter / time.Microsecond))
	}
}

func TestStore_TakeAllocatesNothing(t *testing.T) {
	s := mustNew(t, memstore.Config{})
	allow, deny := mustLimit(t, 1_000_000*bucket.Token, bucket.Token), mustLimit(t, bucket.Token, 1)
	take(t, s, "deny", deny, bucket.Token)
	dst := make([]bucket.Snapshot, 0, 4)
	for name, charges := range map[string][]store.Charge{
		"allowed": {{Key: "allow", Limit: allow, Cost: bucket.Token}},
		"denied":  {{Key: "deny", Limit: deny, Cost: bucket.Token}},
	} {
		if got := testing.AllocsPerRun(1000, func() { s.Take(context.Background(), dst, charges, mete.Mode{}) }); got >= 1 {
			t.Errorf("%s: %v allocations a take, want 0", name, got)
		}
	}
}
