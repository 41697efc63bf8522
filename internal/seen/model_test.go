// SPDX-License-Identifier: Apache-2.0

package seen_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/seen"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// limits returns limits of every kind that empty and refill within seconds.
func limits(t testing.TB) []bucket.Limit {
	var all []bucket.Limit
	for _, per := range []time.Duration{time.Millisecond, 700 * time.Millisecond, 3 * time.Second} {
		rate := bucket.Rate{Tokens: 5 * bucket.Token, Per: per}
		for _, spec := range []bucket.Spec{
			{Capacity: 7 * bucket.Token, Rate: rate},
			{Capacity: 3 * bucket.Token, Rate: rate, Queue: 4 * bucket.Token},
			{Algorithm: bucket.AlgorithmStepped, Capacity: 5 * bucket.Token, Rate: rate},
			{Algorithm: bucket.AlgorithmStepped, Capacity: 12 * bucket.Token, Rate: rate, Anchor: bucket.AnchorKey},
			{Algorithm: bucket.AlgorithmStepped, Capacity: 6 * bucket.Token, Rate: rate, Anchor: bucket.AnchorFirst},
			{Algorithm: bucket.AlgorithmSlidingWindow, Rate: rate},
			{Algorithm: bucket.AlgorithmSlidingLog, Rate: rate},
		} {
			all = append(all, compile(t, spec))
		}
	}
	return all
}

// someCharges returns charges of one or two buckets with their own limits.
func someCharges(r *rand.Rand, all []bucket.Limit) []store.Charge {
	chosen := r.Perm(len(all))[:1+r.IntN(2)]
	slices.Sort(chosen)
	var charges []store.Charge
	for _, k := range chosen {
		key, cost := fmt.Sprintf("key%02d", k), bucket.Tokens(r.Int64N(4))*700
		if r.IntN(20) == 0 {
			cost = 8 * bucket.Token
		}
		charges = append(charges, store.Charge{Key: key, Limit: all[k].ForKey(key), Cost: cost})
	}
	return charges
}

// sameToPeople reports whether two snapshots are equal, except that got may have fewer tokens of a sliding log.
func sameToPeople(got, want bucket.Snapshot) bool {
	if got.Limit.Algorithm() != bucket.AlgorithmSlidingLog {
		return got == want
	}
	return got.Limit == want.Limit && got.Cost == want.Cost && got.Allowed == want.Allowed && got.RetryAfter == want.RetryAfter &&
		got.FullAfter() == want.FullAfter() && got.Remaining() <= want.Remaining()
}

// With a store that answers at once, a client cannot distinguish the memory from the store.
func TestTake_LikeTheStore(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(testseed.PCG(seed, 1))
		s := begin(t, seen.Config{DenyFor: time.Hour, Local: seed%2 == 1})
		model, all := storetest.NewModel(s.clock.Now), limits(t)
		var charges []store.Charge
		for step := range 1500 {
			if step == 0 || r.IntN(3) == 0 {
				charges = someCharges(r, all)
			}
			s.clock.Advance(r.Int64N(1 << r.IntN(20)))
			mode := store.Mode{DryRun: r.IntN(4) == 0}
			switch r.IntN(24) {
			case 0:
				s.store.Refund(t.Context(), storetest.Refunds(charges...), "")
				model.Refund(t.Context(), storetest.Refunds(charges...), "")
				continue
			case 1:
				s.store.Reset(t.Context(), []string{charges[0].Key})
				model.Reset(t.Context(), []string{charges[0].Key})
				continue
			case 2:
				mode.MaxWait = bucket.Forced
			case 3:
				mode.UpTo = true
			case 4:
				mode.ID = fmt.Sprint("id", r.IntN(3))
			}
			got, allowed, err := s.store.Take(t.Context(), nil, charges, mode)
			want, wantAllowed, _ := model.Take(t.Context(), nil, charges, mode)
			same := err == nil && allowed == wantAllowed && len(got) == len(want)
			for i := range want {
				same = same && sameToPeople(got[i], want[i])
			}
			if !same {
				t.Fatalf("seed %d, step %d: a take %+v of %+v:\n got %v %+v, %v\nwant %v %+v", seed, step, mode, charges, allowed, got, err, wantAllowed, want)
			}
		}
		if denied := s.memory.Stats().Denied; denied < 50 {
			t.Errorf("seed %d: only %d takes were denied from memory", seed, denied)
		}
	}
}

// The memory denies no take that the store would admit, with any latency and with takes of other processes.
// Store and memory round instants differently.
func TestTake_FarFromTheStore(t *testing.T) {
	all := limits(t)
	for seed := range uint64(60) {
		r := rand.New(testseed.PCG(seed, 2))
		clock := time.Hour + time.Duration(r.Int64N(int64(time.Hour)))
		way := func() { clock += time.Duration(r.Int64N(1 << r.IntN(28))) }
		inner := &counted{Store: storetest.NewModel(func() bucket.Instant { return bucket.Instant(clock / time.Microsecond) })}
		inner.before, inner.after = way, way
		phase := time.Duration(r.Int64N(1000))
		s, fromMemory := remember(inner, seen.Config{
			DenyFor: time.Hour, Local: seed%2 == 1, Now: func() bucket.Instant { return bucket.Instant((clock + phase) / time.Microsecond) },
		}), 0
		for range 1500 {
			way()
			charges := someCharges(r, all)
			if r.IntN(3) == 0 { // through another node
				inner.Store.Take(t.Context(), nil, charges, store.Mode{})
				continue
			}
			before := inner.takes.Load()
			snaps, allowed, err := s.Take(t.Context(), nil, charges, store.Mode{})
			if err != nil {
				t.Fatal(err)
			}
			if inner.takes.Load() > before {
				continue // the store was asked
			}
			fromMemory++
			if _, admits, _ := inner.Store.Take(t.Context(), nil, charges, store.Mode{DryRun: true}); allowed || admits {
				t.Fatalf("seed %d: at %v a take of %+v was answered %v from memory, %+v; the store says %v", seed, clock, charges, allowed, snaps, admits)
			}
		}
		if fromMemory < 50 {
			t.Errorf("seed %d: only %d takes were denied from memory", seed, fromMemory)
		}
	}
}

// A client that waits for the returned time is admitted, and has waited at most one round trip too long.
func TestTake_WaitsAreTrue(t *testing.T) {
	all := limits(t)
	for seed := range uint64(100) {
		r := rand.New(testseed.PCG(seed, 3))
		s := begin(t, seen.Config{DenyFor: time.Hour, Local: seed/2%2 == 1})
		var trip time.Duration // of the last call that asked the store
		way := func() {
			us := r.Int64N(50_000)
			trip += time.Duration(us) * time.Microsecond
			s.clock.Advance(us)
		}
		s.inner.before, s.inner.after = func() { trip = 0; way() }, way
		key, fromMemory := fmt.Sprint("key", seed), 0
		charges := []store.Charge{{Key: key, Limit: all[seed%uint64(len(all))].ForKey(key), Cost: 2 * bucket.Token}}
		for range 300 {
			before := s.inner.takes.Load()
			snaps, allowed, err := s.store.Take(t.Context(), nil, charges, store.Mode{})
			if err != nil {
				t.Fatal(err)
			}
			if allowed {
				continue
			}
			if s.inner.takes.Load() == before {
				fromMemory++
				truth, _, _ := s.inner.Store.Take(t.Context(), nil, charges, store.Mode{DryRun: true})
				if over := snaps[0].RetryAfter - truth[0].RetryAfter; over < 0 || over > trip {
					t.Fatalf("seed %d, %v: told to wait for %v, but the truth is %v, and the way took %v", seed, charges[0].Limit, snaps[0].RetryAfter, truth[0].RetryAfter, trip)
				}
			}
			s.clock.Advance(r.Int64N(1 + min(snaps[0].RetryAfter.Microseconds(), 1e6)))
		}
		if _, p := charges[0].Limit.Refill(); fromMemory == 0 && p > 100_000 {
			t.Errorf("seed %d, %v: no take was denied from memory", seed, charges[0].Limit)
		}
	}
}
