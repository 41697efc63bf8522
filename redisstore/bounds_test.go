// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/redisstore"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// TestTake_AtTheBounds uses the largest limits, costs and times. The script computes in doubles, and must agree
// with the model's integers.
func TestTake_AtTheBounds(t *testing.T) {
	client := connect(t, proctest.StartRedis(t).Addr)
	for seed := range uint64(120) {
		r := rand.New(testseed.PCG(seed, 1))
		clock := storetest.NewClock()
		s, model := open(t, client, redisstore.Config{Now: clock.Now}), storetest.NewModel(clock.Now)
		var limits []bucket.Limit
		for len(limits) < 4 {
			if l, _, err := boundSpec(r, bucket.Algorithm(len(limits))).Compile(); err == nil {
				limits = append(limits, l)
			}
		}
		for range 60 {
			k := r.IntN(len(limits))
			l := limits[k]
			clock.Advance(upTo(r, 1<<r.IntN(50)))
			c := store.Charge{Key: fmt.Sprint("k", k), Limit: l, Cost: bucket.Tokens(upTo(r, int64(l.Capacity())))}
			switch r.IntN(8) {
			case 0:
				c.Cost = bucket.Tokens(upTo(r, int64(bucket.MaxTokens)))
			case 1:
				c.Cost = l.Capacity()
			}
			mode := mete.Mode{UpTo: r.IntN(4) == 0}
			if !mode.UpTo && r.IntN(3) == 0 {
				mode.MaxWait = max(time.Duration(upTo(r, 1<<62)), 1)
			}
			if !mode.UpTo && r.IntN(6) == 0 {
				mode.MaxWait = bucket.Forced
			}
			if r.IntN(10) == 0 {
				if err := s.Refund(t.Context(), storetest.Refunds(c), ""); err != nil {
					t.Fatal(err)
				}
				if err := model.Refund(t.Context(), storetest.Refunds(c), ""); err != nil {
					t.Fatal(err)
				}
			}
			got, allowed, err := s.Take(t.Context(), nil, []store.Charge{c}, mode)
			want, wantAllowed, _ := model.Take(t.Context(), nil, []store.Charge{c}, mode)
			if err != nil || allowed != wantAllowed || !slices.Equal(got, want) {
				t.Fatalf("seed %d, at %d, %+v %+v:\n got %v, %+v, %v\nwant %v, %+v", seed, clock.Now(), c, mode, allowed, got, err, wantAllowed, want)
			}
		}
	}
}

// TestTake_InTheLongestWindow uses a part of a window with a quotient too close to an integer for a double.
func TestTake_InTheLongestWindow(t *testing.T) {
	const per, tokens = 1<<47 - 1, 4096 * bucket.Token
	l, _, err := bucket.Spec{Algorithm: bucket.AlgorithmSlidingWindow, Rate: bucket.Rate{Tokens: tokens, Per: per * time.Microsecond}}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	clock := storetest.NewClock()
	s := open(t, connect(t, proctest.StartRedis(t).Addr), redisstore.Config{Now: clock.Now})
	take := func(cost bucket.Tokens, at bucket.Instant) bool {
		t.Helper()
		clock.Set(at)
		_, allowed, err := s.Take(t.Context(), nil, []store.Charge{{Key: "k", Limit: l, Cost: cost}}, mete.Mode{})
		if err != nil {
			t.Fatal(err)
		}
		return allowed
	}
	if !take(tokens, 2*per) {
		t.Fatal("a full window was denied")
	}
	const last = (4095*per - 1) / 4096 // 4095/4096 of the window, minus the smallest unit
	if take(tokens-bucket.Token, 3*per+last) {
		t.Error("admitted a microsecond before the share was there")
	}
	if !take(tokens-bucket.Token, 3*per+last+1) {
		t.Error("denied when the share was there")
	}
}

// upTo returns a number of any magnitude from 0 to most, and often most.
func upTo(r *rand.Rand, most int64) int64 {
	if r.IntN(4) == 0 {
		return most - min(r.Int64N(3), most)
	}
	return r.Int64N(most+1) >> r.IntN(40)
}

// boundSpec returns a spec with some part near a bound. It may not compile.
func boundSpec(r *rand.Rand, kind bucket.Algorithm) bucket.Spec {
	spec := bucket.Spec{Algorithm: kind, Rate: bucket.Rate{Tokens: bucket.Tokens(1 + upTo(r, 1<<53-2)), Per: time.Microsecond}}
	owed := bucket.Tokens(upTo(r, 1<<53-1))
	switch kind {
	case bucket.AlgorithmContinuous:
		spec.Capacity, spec.Rate.Per = bucket.Tokens(1+upTo(r, 1<<53-2)), time.Duration(1+upTo(r, 1<<40))*time.Microsecond
	case bucket.AlgorithmStepped:
		spec.Capacity, spec.Rate.Per = bucket.Tokens(1+upTo(r, 1<<53-2)), time.Duration(1+upTo(r, 1<<50-2))*time.Microsecond
		spec.Anchor = bucket.AnchorFirst * bucket.Anchor(r.IntN(2))
	case bucket.AlgorithmSlidingWindow:
		spec.Rate.Tokens = bucket.Tokens(1 + upTo(r, int64(bucket.MaxWindowTokens)-1))
	default:
		spec.Rate.Tokens = bucket.Tokens(1 + upTo(r, int64(bucket.MaxLogTokens)-1))
	}
	if kind >= bucket.AlgorithmSlidingWindow {
		owed, spec.Rate.Per = 0, time.Duration(1+upTo(r, 1<<47-2))*time.Microsecond
	}
	if r.IntN(2) == 0 {
		spec.MaxReserved = &owed
	}
	return spec
}
