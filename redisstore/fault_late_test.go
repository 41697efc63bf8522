// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/faulttest"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/redisstore"
	"github.com/metehq/mete/store"
)

// TestFault_TimeoutHolds proves that a take without a deadline waits for the store's timeout at most. If it waits
// for another call first, it may take twice as long.
func TestFault_TimeoutHolds(t *testing.T) {
	faulttest.RunParallel(t)
	const timeout = 100 * time.Millisecond
	s, direct, proxy := behindProxy(t, redisstore.Config{Timeout: timeout})
	answered := func(id string) { // a slow machine may be late
		faulttest.Eventually(t, "a take is answered", func() error {
			_, _, err := s.Take(t.Context(), nil, slowCharges("k"), mete.Mode{ID: id})
			return err
		})
	}
	answered("first")
	proxy.Blackhole(true)
	for _, what := range []string{"connected", "connecting"} {
		faulttest.CheckDuration(t, what+": takes fail", 2*timeout+2*slack, func() {
			var callers sync.WaitGroup
			for range 20 {
				callers.Go(func() {
					if _, _, err := s.Take(t.Context(), nil, slowCharges("k"), mete.Mode{}); err == nil {
						t.Errorf("%s: a take was answered by nobody", what)
					}
				})
			}
			callers.Wait()
		})
		proxy.CutNow()
	}
	proxy.Blackhole(false)
	answered("last")
	if got := charged(t, direct, "k"); got > 3 {
		t.Errorf("%d takes are missing, and 2 were admitted", got)
	}
}

// TestFault_CallersDeadline proves that a caller's earlier deadline counts, also for a single caller.
func TestFault_CallersDeadline(t *testing.T) {
	const timeout = faulttest.Patience // a slow machine does not take half of it
	r := proctest.StartRedis(t)
	s, _ := dialURL(t, "redis://"+r.Addr, redisstore.Config{Timeout: timeout})
	if _, _, err := s.Take(t.Context(), nil, slowCharges("k"), mete.Mode{}); err != nil {
		t.Fatal(err)
	}
	r.Pause()
	defer r.Resume()
	ctx, cancel := context.WithTimeout(t.Context(), timeout/300)
	defer cancel()
	began := time.Now()
	_, _, err := s.Take(ctx, nil, slowCharges("k"), mete.Mode{Within: timeout})
	if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took > timeout/2 {
		t.Errorf("error %v after %v, want that the deadline of %v has passed", err, took, timeout/300)
	}
}

// TestFault_LateRepliesAreNobodysElse gives each bucket a different number of tokens, so that an answer of a
// different call would show.
func TestFault_LateRepliesAreNobodysElse(t *testing.T) {
	faulttest.RunParallel(t)
	const buckets = 50
	s, _, proxy := behindProxy(t, redisstore.Config{Timeout: 30 * time.Millisecond, MaxInFlight: 4})
	key := func(i int) string { return fmt.Sprint("k", i) }
	for i := range buckets {
		c := store.Charge{Key: key(i), Limit: slowLimit, Cost: bucket.Tokens(1+i) * bucket.Token}
		faulttest.Eventually(t, "a take is answered", func() error { // within such a short timeout
			_, _, err := s.Take(t.Context(), nil, []store.Charge{c}, mete.Mode{ID: c.Key})
			return err
		})
	}
	ctx, stop := context.WithTimeout(t.Context(), faulttest.Patience)
	defer stop()
	var callers sync.WaitGroup
	var answered, failed atomic.Int64
	for range 8 {
		callers.Go(func() {
			for ctx.Err() == nil {
				i := rand.IntN(buckets)
				mode := mete.Mode{DryRun: rand.IntN(2) == 0, Within: time.Duration(1+rand.IntN(60)) * time.Millisecond}
				snaps, _, err := s.Take(t.Context(), nil, []store.Charge{{Key: key(i), Limit: slowLimit}}, mode)
				if err != nil {
					failed.Add(1)
					continue
				}
				answered.Add(1)
				if got, want := snaps[0].Remaining(), slowLimit.Capacity()-bucket.Tokens(1+i)*bucket.Token; got < want || got > want+1 {
					t.Errorf("%q holds %v, want %v", key(i), got, want)
				}
			}
		})
	}
	for n := 0; ctx.Err() == nil && (n < 75 || answered.Load() == 0 || failed.Load() == 0); n++ {
		proxy.Delay(time.Duration(rand.IntN(50)) * time.Millisecond)
		before := answered.Load() + failed.Load()
		faulttest.Eventually(t, "takes end", func() error {
			if answered.Load()+failed.Load() < before+8 {
				return errors.New("fewer than 8 have ended")
			}
			return nil
		})
	}
	stop()
	callers.Wait()
	if answered.Load() == 0 || failed.Load() == 0 {
		t.Errorf("answered %d, failed %d: want some of both", answered.Load(), failed.Load())
	}
}
