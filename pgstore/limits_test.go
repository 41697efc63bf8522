// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// TestTake_AtTheBounds uses the largest limits, costs and times. The functions agree with the model, and keep a
// row for an hour and until its bucket is full.
func TestTake_AtTheBounds(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	schema := migrated(t, pool)
	for seed := range uint64(30) {
		r := rand.New(testseed.PCG(seed, 1))
		clock := storetest.NewClock()
		prefix := fmt.Sprint(seed, ":")
		s := open(t, pool, pgstore.Config{Schema: schema, Prefix: prefix, Now: clock.Now, Timeout: awhile})
		model := storetest.NewModel(clock.Now)
		var limits []bucket.Limit
		for len(limits) < 4 {
			if l, _, err := boundSpec(r, bucket.Algorithm(len(limits))).Compile(); err == nil {
				limits = append(limits, l)
			}
		}
		for range 60 {
			k := r.IntN(len(limits))
			l := limits[k]
			if r.IntN(10) == 0 {
				l = limits[r.IntN(len(limits))]
			}
			clock.Advance(upTo(r, 1<<r.IntN(50)))
			if r.IntN(10) == 0 {
				clock.Set(clock.Now() - bucket.Instant(upTo(r, 1<<r.IntN(44))))
			}
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
			charges := []store.Charge{c}
			refund := r.IntN(8) == 0
			before := serverTime(t, pool)
			if refund {
				if err := s.Refund(t.Context(), storetest.Refunds(charges...), ""); err != nil {
					t.Fatal(err)
				}
				if err := model.Refund(t.Context(), storetest.Refunds(charges...), ""); err != nil {
					t.Fatal(err)
				}
			} else {
				got, allowed, err := s.Take(t.Context(), nil, charges, mode)
				want, wantAllowed, _ := model.Take(t.Context(), nil, charges, mode)
				if err != nil || allowed != wantAllowed || !slices.Equal(got, want) {
					t.Fatalf("seed %d, at %d, %+v %+v:\n got %v, %+v, %v\nwant %v, %+v", seed, clock.Now(), c, mode, allowed, got, err, wantAllowed, want)
				}
				if !allowed {
					continue
				}
			}
			if c.Cost == 0 {
				continue // nothing was written
			}
			charges[0].Cost = 0
			snaps, _, _ := model.Take(t.Context(), nil, charges, mete.Mode{DryRun: true})
			// With further accounts, the row stays as long as they do.
			due := number(t, pool, "SELECT coalesce(min(full_at), 0) FROM "+schema+".bucket WHERE key = $1 AND spent > 0 AND others IS NULL AND lim = '1:' || $2", []byte(prefix+c.Key), l.Encode())
			if due == 0 {
				continue
			}
			full := snaps[0].FullAfter().Microseconds()
			if at := due - time.Hour.Microseconds() - full; full > 0 && full < 1<<50 && (at < before || at > serverTime(t, pool)+1) {
				t.Errorf("seed %d, refund %v, %+v: its row goes %d µs after it is full", seed, refund, snaps[0], at-before)
			}
		}
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
