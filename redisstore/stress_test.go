// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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

// TestStress_ScriptAndCoreAgree runs all operations on few buckets of all algorithms from many goroutines, by the
// server's clock. A take fails if the script and package bucket disagree. At the end, Redis is empty.
func TestStress_ScriptAndCoreAgree(t *testing.T) {
	t.Parallel()
	client := connect(t, proctest.StartRedis(t).Addr)
	s := open(t, client, redisstore.Config{MaxInFlight: 4, Timeout: awhile})
	limits := stressed(t)
	var all sync.WaitGroup
	var admitted, denied atomic.Int64
	for g := range 32 {
		r := rand.New(testseed.PCG(uint64(g), 5))
		all.Go(func() {
			for range 400 {
				charges, mode := stress(r, limits)
				if r.IntN(8) == 0 {
					if err := s.Refund(t.Context(), storetest.Refunds(charges...), ""); err != nil {
						t.Errorf("refund %+v: %v", charges, err)
					}
					continue
				}
				snaps, allowed, err := s.Take(t.Context(), nil, charges, mode)
				if err != nil || len(snaps) != len(charges) {
					t.Errorf("%+v %+v: %d snapshots, %v", charges, mode, len(snaps), err)
					return
				}
				if allowed {
					admitted.Add(1)
				} else {
					denied.Add(1)
				}
			}
		})
	}
	all.Wait()
	if admitted.Load() < 1000 || denied.Load() < 1000 {
		t.Errorf("%d admitted, %d denied: want some of both", admitted.Load(), denied.Load())
	}
	ctx, cancel := context.WithTimeout(t.Context(), awhile)
	defer cancel()
	if err := proctest.Poll(ctx, func(ctx context.Context) error {
		keys, err := client.Do(ctx, client.B().Keys().Pattern("*").Build()).AsStrSlice()
		if keys = slices.DeleteFunc(keys, func(k string) bool { return strings.Contains(k, ":id:") }); err != nil || len(keys) > 0 {
			return errors.Join(err, fmt.Errorf("%q are left", keys))
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// stressed returns limits that are full again within seconds, even with reservations.
func stressed(t *testing.T) (limits []bucket.Limit) {
	t.Helper()
	owed := 3 * bucket.Token
	rate := bucket.Rate{Tokens: 7 * bucket.Token, Per: 900 * time.Millisecond}
	for _, spec := range []bucket.Spec{
		{Capacity: 5 * bucket.Token, MaxReserved: &owed},
		{Capacity: 7500, MaxReserved: &owed},
		{Capacity: bucket.Token, Queue: 4 * bucket.Token},
		{Algorithm: bucket.AlgorithmStepped, Capacity: 5 * bucket.Token, MaxReserved: &owed},
		{Algorithm: bucket.AlgorithmStepped, Capacity: 9 * bucket.Token, MaxReserved: &owed, Anchor: bucket.AnchorFirst},
		{Algorithm: bucket.AlgorithmSlidingWindow, MaxReserved: new(bucket.Tokens)},
		{Algorithm: bucket.AlgorithmSlidingLog, MaxReserved: new(bucket.Tokens)},
	} {
		spec.Rate = rate
		l, _, err := spec.Compile()
		if err != nil {
			t.Fatal(err)
		}
		limits = append(limits, l)
	}
	return limits
}

// stress returns a random take.
func stress(r *rand.Rand, limits []bucket.Limit) (charges []store.Charge, mode mete.Mode) {
	for _, k := range r.Perm(2 * len(limits))[:1+max(r.IntN(5)-2, 0)] {
		l := limits[k/2]
		if r.IntN(20) == 0 {
			l = limits[r.IntN(len(limits))] // a key's limit changes occasionally
		}
		charges = append(charges, store.Charge{Key: fmt.Sprintf("k%02d", k), Limit: l, Cost: bucket.Tokens(r.Int64N(3000))})
	}
	slices.SortFunc(charges, func(a, b store.Charge) int { return strings.Compare(a.Key, b.Key) })
	switch r.IntN(12) {
	case 0:
		mode.MaxWait = time.Duration(r.IntN(500)) * time.Millisecond
	case 1:
		mode.MaxWait = bucket.Forced
	case 2:
		mode.UpTo = true
	case 3:
		mode.DryRun = true
	}
	if r.IntN(6) == 0 {
		mode.ID = fmt.Sprint("request", r.IntN(20))
	}
	if r.IntN(3) == 0 {
		mode.Within = 10 * time.Second
	}
	return charges, mode
}
