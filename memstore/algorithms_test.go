// SPDX-License-Identifier: Apache-2.0

package memstore_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// everyAlgorithm returns limits of each kind, small enough to run dry.
func everyAlgorithm(tb testing.TB) []bucket.Limit {
	tb.Helper()
	rate := bucket.Rate{Tokens: 5 * bucket.Token, Per: 10 * time.Millisecond}
	var limits []bucket.Limit
	for _, spec := range []bucket.Spec{
		{Capacity: 20 * bucket.Token, Rate: rate},
		{Capacity: bucket.Token, Rate: rate, Queue: 9 * bucket.Token},
		{Algorithm: bucket.AlgorithmStepped, Capacity: 20 * bucket.Token, Rate: rate},
		{Algorithm: bucket.AlgorithmStepped, Capacity: 5 * bucket.Token, Rate: rate, Start: 3 * time.Millisecond},
		{Algorithm: bucket.AlgorithmStepped, Capacity: 20 * bucket.Token, Rate: rate, Anchor: bucket.AnchorKey},
		{Algorithm: bucket.AlgorithmStepped, Capacity: 20 * bucket.Token, Rate: rate, Anchor: bucket.AnchorFirst, Queue: 3 * bucket.Token},
		{Algorithm: bucket.AlgorithmSlidingWindow, Rate: rate},
		{Algorithm: bucket.AlgorithmSlidingWindow, Rate: bucket.Rate{Tokens: bucket.MaxWindowTokens, Per: time.Microsecond}},
		{Algorithm: bucket.AlgorithmSlidingLog, Rate: rate},
	} {
		l, _, err := spec.Compile()
		if err != nil {
			tb.Fatal(err)
		}
		limits = append(limits, l)
	}
	return limits
}

// Every algorithm decides like the model, also when keys are evicted, become side rows, and change their
// algorithm. The test runs near the epoch, far from the start of the store, and with a clock that steps back.
func TestAlgorithms_AgreeWithTheModel(t *testing.T) {
	limits := everyAlgorithm(t)
	for seed := range uint64(30) {
		r := rand.New(testseed.PCG(seed, 1))
		clock := storetest.NewClock()
		if seed%3 == 0 {
			clock.Set(bucket.Instant(r.Int64N(50_000)))
		}
		s, model := mustNew(t, memstore.Config{MaxKeys: 64, Now: clock.Now}), storetest.NewModel(clock.Now)
		for step := range 3000 {
			switch d := r.Int64N(1 << (1 + r.IntN(15))); {
			case r.IntN(500) == 0:
				clock.Advance(d << 30)
			case r.IntN(10) == 0:
				clock.Set(max(clock.Now()-bucket.Instant(d), 0))
			default:
				clock.Advance(d)
			}
			var charges []store.Charge
			for _, k := range r.Perm(40)[:1+r.IntN(3)] {
				l := limits[k%len(limits)]
				if r.IntN(20) == 0 {
					l = limits[r.IntN(len(limits))]
				}
				key := strconv.Itoa(k)
				charges = append(charges, store.Charge{Key: key, Limit: l.ForKey(key), Cost: bucket.Tokens(r.Int64N(6000))})
			}
			slices.SortFunc(charges, func(a, b store.Charge) int { return slices.Compare([]byte(a.Key), []byte(b.Key)) })
			if r.IntN(10) == 0 {
				s.Refund(t.Context(), storetest.Refunds(charges...), "")
				model.Refund(t.Context(), storetest.Refunds(charges...), "")
				continue
			}
			mode := mete.Mode{DryRun: r.IntN(8) == 0}
			switch r.IntN(6) {
			case 0:
				mode.MaxWait = time.Duration(r.Int64N(30_000)) * time.Microsecond
			case 1:
				mode.MaxWait = bucket.Forced
			}
			got, allowed, err := s.Take(t.Context(), nil, charges, mode)
			want, wantAllowed, _ := model.Take(t.Context(), nil, charges, mode)
			if err != nil || allowed != wantAllowed || !slices.Equal(got, want) {
				t.Fatalf("seed %d, step %d at %d: %+v %+v:\n got %v %+v, error %v\nwant %v %+v", seed, step, clock.Now(), mode, charges, allowed, got, err, wantAllowed, want)
			}
		}
		memstore.CheckInvariants(t, s)
	}
}

// A side row is evicted with its slot, by a replacement and by growth.
func TestAlgorithms_LogsAreForgottenWhole(t *testing.T) {
	l, _, err := bucket.Spec{Algorithm: bucket.AlgorithmSlidingLog, Rate: bucket.Rate{Tokens: 3 * bucket.Token, Per: time.Second}}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	for _, maxKeys := range []int{30, 1 << 20} {
		clock := storetest.NewClock()
		s := mustNew(t, memstore.Config{MaxKeys: maxKeys, Now: clock.Now})
		for i := range 3000 {
			take(t, s, strconv.Itoa(i), l, bucket.Token)
			clock.Advance(100_000)
		}
		memstore.CheckInvariants(t, s)
	}
}

// A sliding log is empty after its only take was canceled. A take at the same instant must stay when the bucket is next
// written.
func TestAlgorithms_LogAfterACancellation(t *testing.T) {
	l, _, err := bucket.Spec{Algorithm: bucket.AlgorithmSlidingLog, Rate: bucket.Rate{Tokens: 3 * bucket.Token, Per: time.Second}}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	clock := storetest.NewClock()
	s := mustNew(t, memstore.Config{Now: clock.Now})
	charges := []store.Charge{{Key: "k", Limit: l, Cost: bucket.Token}}
	snaps, _, _ := s.Take(t.Context(), nil, charges, mete.Mode{})
	cancel := []mete.Refund{{Charge: charges[0], Taken: snaps[0].Taken()}}
	clock.Advance(1)
	for range 2 { // the second cancellation finds no entry
		if err := s.Refund(t.Context(), cancel, ""); err != nil {
			t.Fatal(err)
		}
		take(t, s, "k", l, bucket.Token)
	}
	if snaps, _, _ = s.Take(t.Context(), nil, charges, mete.Mode{DryRun: true}); snaps[0].Missing() != 2*bucket.Token {
		t.Errorf("misses %v, want 2", snaps[0].Missing())
	}
}

// TestAlgorithms_LargestWindow spends the most tokens that a window can have. Half of them still count in the next window.
func TestAlgorithms_LargestWindow(t *testing.T) {
	rate := bucket.Rate{Tokens: bucket.MaxWindowTokens, Per: time.Hour}
	l, _, err := bucket.Spec{Algorithm: bucket.AlgorithmSlidingWindow, Rate: rate}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	clock := storetest.NewClock()
	s := mustNew(t, memstore.Config{Now: clock.Now})
	hour := bucket.Instant(time.Hour.Microseconds())
	start := clock.Now() - clock.Now()%hour + hour
	for _, c := range []struct {
		at         bucket.Instant
		cost, want bucket.Tokens
	}{{start, bucket.MaxWindowTokens, 0}, {start + hour, 0, 0}, {start + 3*hour/2, 1, bucket.MaxWindowTokens/2 - 1}} {
		clock.Set(c.at)
		snaps, allowed, err := s.Take(t.Context(), nil, []store.Charge{{Key: "k", Limit: l, Cost: c.cost}}, mete.Mode{})
		if got := snaps[0].Remaining(); err != nil || !allowed || got != c.want {
			t.Errorf("a cost of %v at %d: allowed %v, %v remain, want %v; error %v", c.cost, c.at, allowed, got, c.want, err)
		}
	}
}
