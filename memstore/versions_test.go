// SPDX-License-Identifier: Apache-2.0

package memstore_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// On the process's clock the store agrees with the model, also if versions of a limit alternate. A bucket
// refills by its old limit until the change.
func TestVersions_AgreeWithTheModelOnTheProcessClock(t *testing.T) {
	limits := everyAlgorithm(t)
	limits = append(limits, mustLimit(t, 19*bucket.Token, 500*bucket.Token), mustLimit(t, 20*bucket.Token, 400*bucket.Token))
	for seed := range uint64(10) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(testseed.PCG(seed, 21))
			now := func() bucket.Instant { return bucket.At(time.Now()) }
			s, model := mustNew(t, memstore.Config{}), storetest.NewModel(now)
			for step := range 2000 {
				time.Sleep(time.Duration(r.Int64N(1<<(1+r.IntN(14)))) * time.Microsecond)
				var charges []store.Charge
				for k := range 1 + r.IntN(3) {
					key, l := fmt.Sprint("k", k), limits[(r.IntN(2)*(1+k)+step/300)%len(limits)]
					charges = append(charges, store.Charge{Key: key, Limit: l.ForKey(key), Cost: bucket.Tokens(r.Int64N(4000))})
				}
				mode := mete.Mode{DryRun: r.IntN(8) == 0}
				if r.IntN(4) == 0 {
					mode.MaxWait = time.Duration(r.Int64N(30_000)) * time.Microsecond
				}
				got, allowed, err := s.Take(t.Context(), nil, charges, mode)
				want, wantAllowed, _ := model.Take(t.Context(), nil, charges, mode)
				if err != nil || allowed != wantAllowed || !slices.Equal(got, want) {
					t.Fatalf("seed %d, step %d: %+v %+v:\n got %v %+v, error %v\nwant %v %+v", seed, step, mode, charges, allowed, got, err, wantAllowed, want)
				}
			}
			memstore.CheckInvariants(t, s)
		})
	}
}

// A lowered rate does not apply to the time before the change: the old rate has filled the bucket by then.
// Redis and PostgreSQL decide alike.
func TestVersions_OldRateRefillsUntilTheChange(t *testing.T) {
	quick, slow := mustLimit(t, 10*bucket.Token, 10*bucket.Token), mustLimit(t, 10*bucket.Token, 3)
	check := func(t *testing.T, s *memstore.Store, pass func(time.Duration)) {
		take(t, s, "k", quick, 10*bucket.Token)
		pass(1200 * time.Millisecond) // full since 200 ms
		if got := take(t, s, "k", slow, 5*bucket.Token); !got.Allowed || got.Remaining() != 5*bucket.Token {
			t.Errorf("5 of a full bucket of 10, after its rate was lowered: allowed %v, %v remain", got.Allowed, got.Remaining())
		}
	}
	clock := storetest.NewClock()
	check(t, mustNew(t, memstore.Config{Now: clock.Now}), func(d time.Duration) { clock.Advance(d.Microseconds()) })
	synctest.Test(t, func(t *testing.T) { check(t, mustNew(t, memstore.Config{}), time.Sleep) })
}

// Many goroutines charge two versions that differ only in burst or rate. Both accounts of a bucket lack all
// admitted costs.
func TestVersions_ConserveUnderConcurrency(t *testing.T) {
	clock := storetest.NewClock() // stands still
	s := mustNew(t, memstore.Config{Now: clock.Now})
	versions := []bucket.Limit{mustLimit(t, 900*bucket.Token, 1), mustLimit(t, 900*bucket.Token, 2), mustLimit(t, 700*bucket.Token, 1)}
	keys := []string{"a", "b", "c"}
	for _, key := range keys { // none is full from here on: accounts stay
		for _, l := range versions {
			take(t, s, key, l, bucket.Token)
		}
	}
	var admitted [3]atomic.Int64
	var wg sync.WaitGroup
	for g := range 6 {
		wg.Go(func() {
			r := rand.New(testseed.PCG(uint64(g), 31))
			for step := range 1500 {
				var charges []store.Charge
				var chosen []int
				for i, key := range keys {
					if r.IntN(2) == 0 {
						charges = append(charges, store.Charge{Key: key, Limit: versions[(g+step/50)%len(versions)], Cost: bucket.Tokens(r.Int64N(100))})
						chosen = append(chosen, i)
					}
				}
				if step%8 == 0 { // shards grow
					charges = append(charges, store.Charge{Key: fmt.Sprint("new", g, step), Limit: versions[0], Cost: 1})
				}
				_, allowed, err := s.Take(t.Context(), nil, charges, mete.Mode{})
				if err != nil {
					t.Error(err)
				}
				for j, i := range chosen {
					if allowed {
						admitted[i].Add(int64(charges[j].Cost))
					}
				}
			}
		})
	}
	wg.Wait()
	for i, key := range keys {
		missing := 3*bucket.Token + bucket.Tokens(admitted[i].Load())
		for _, l := range versions {
			if got := peek(t, s, key, l).Missing(); got != min(missing, l.Capacity()) {
				t.Errorf("key %s, %v: misses %v, want %v", key, l, got, missing)
			}
		}
	}
	memstore.CheckInvariants(t, s)
}

// While the store becomes full and has room again, two versions alternate on one key. Each stays within its own
// bound.
func TestVersions_KeepTheirBoundsWithoutRoom(t *testing.T) {
	quick := mustLimit(t, bucket.Token, 1000*bucket.Token) // full again in 1 ms
	for seed := range uint64(300) {
		r := rand.New(testseed.PCG(seed, 41))
		clock := storetest.NewClock()
		s := mustNew(t, memstore.Config{MaxKeys: 6, Now: clock.Now})
		for i := range 6 {
			take(t, s, fmt.Sprint("first", i), quick, bucket.Token)
		}
		versions := []bucket.Limit{mustLimit(t, 5*bucket.Token, 1), mustLimit(t, 7*bucket.Token, 1)}
		admitted := make([]int, len(versions))
		for step := range 60 {
			switch r.IntN(8) {
			case 0:
				clock.Advance(200_000) // a sweep is due
			case 1, 2:
				take(t, s, fmt.Sprint("quick", step), quick, bucket.Token)
			default:
				v := r.IntN(len(versions))
				if take(t, s, "k", versions[v], bucket.Token).Allowed {
					admitted[v]++
				}
			}
		}
		if admitted[0] > 5 || admitted[1] > 7 {
			t.Fatalf("seed %d: buckets of 5 and 7 admitted %v", seed, admitted)
		}
		memstore.CheckInvariants(t, s)
	}
}

// A key with an unchanged limit gets a slot again when the accounts of the other versions are full.
func TestVersions_EndWhenTheOthersAreFull(t *testing.T) {
	clock := storetest.NewClock()
	s := mustNew(t, memstore.Config{Now: clock.Now})
	a, b := mustLimit(t, 10*bucket.Token, bucket.Token), mustLimit(t, 20*bucket.Token, 10*bucket.Token)
	take(t, s, "k", a, 5*bucket.Token)
	take(t, s, "k", b, bucket.Token)
	if !memstore.IsAside(s, "k") {
		t.Error("a row of two accounts is in a slot")
	}
	for range 4 {
		clock.Advance(1_500_000)
		take(t, s, "k", a, bucket.Token)
	}
	clock.Advance(10_000_000)
	take(t, s, "k", a, bucket.Token)
	if memstore.IsAside(s, "k") {
		t.Error("the account of another version is kept, though it is full")
	}
	if got := testing.AllocsPerRun(100, func() { s.TakeOne("k", &a, 1) }); got != 0 {
		t.Errorf("%v allocations a call, want 0", got)
	}
}

// Many goroutines take two keys together, and refund or reset them. A reader sees the effect on both or on neither.
func TestRefundAndReset_AreOneStep(t *testing.T) {
	s, l := mustNew(t, memstore.Config{}), mustLimit(t, 1000*bucket.Token, 1)
	limits := map[string]bucket.Limit{"continuous": l}
	for _, l := range slowLimits(t, 1000*bucket.Token) {
		limits[l.Algorithm().String()] = l
	}
	for name, l := range limits {
		charges := []store.Charge{{Key: name + " a", Limit: l, Cost: bucket.Token}, {Key: name + " b", Limit: l, Cost: bucket.Token}}
		keys := []string{charges[0].Key, charges[1].Key}
		var wg sync.WaitGroup
		var torn atomic.Int64
		look := func(mode mete.Mode, cost bucket.Tokens) {
			ask := slices.Clone(charges)
			ask[0].Cost, ask[1].Cost = cost, cost
			snaps, _, err := s.Take(t.Context(), nil, ask, mode)
			if err != nil || snaps[0].Missing() != snaps[1].Missing() {
				torn.Add(1)
			}
		}
		for g := range 4 {
			wg.Go(func() {
				for i := range 1500 {
					switch {
					case g == 0:
						look(mete.Mode{DryRun: true}, 0)
					case g == 1:
						look(mete.Mode{}, 0)
					case i%16 == 15:
						if err := s.Reset(t.Context(), keys); err != nil {
							t.Error(err)
						}
					default:
						look(mete.Mode{}, bucket.Token)
						if err := s.Refund(t.Context(), storetest.Refunds(charges...), ""); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
		wg.Wait()
		if n := torn.Load(); n > 0 {
			t.Errorf("%s: %d looks saw one key given back and the other not", name, n)
		}
	}
	memstore.CheckInvariants(t, s)
}
