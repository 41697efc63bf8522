// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/store"
)

// 10,000 waiters leave in order of arrival, with one or two store calls each.
func TestWait_NoHerd(t *testing.T) {
	for name, spec := range map[string]bucket.Spec{
		"token bucket": {Capacity: bucket.Token, Rate: perSecond(100)},
		"no debt":      {Capacity: bucket.Token, Rate: perSecond(100), MaxReserved: new(bucket.Tokens)},
		"sliding log":  {Algorithm: bucket.AlgorithmSlidingLog, Rate: perSecond(100)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLine(t, spec)
				l.empty()
				waiters := 1000
				if name == "token bucket" {
					waiters = 10_000
				}
				after := make([]time.Duration, waiters)
				var wg sync.WaitGroup
				for i := range waiters {
					wg.Go(func() {
						if _, err := l.Wait(t.Context(), l.request(1)); err != nil {
							t.Error(err)
						}
						after[i] = time.Since(l.begin)
					})
					synctest.Wait()
				}
				wg.Wait()
				if !slices.IsSorted(after) {
					t.Error("the waiters left out of order")
				}
				if got, want := time.Since(l.begin), time.Duration(waiters/100)*time.Second; name != "sliding log" && got > want {
					t.Errorf("all left after %v, want %v", got, want)
				}
				if got := l.store.takes.Load(); got > int64(2*waiters+3) {
					t.Errorf("%d takes for %d waiters", got, waiters)
				}
			})
		})
	}
}

// Waiters that arrive during a slow store call also call the store, so that available tokens are not handed out
// one by one. If that fails, they queue.
func TestWait_WhileTheStoreIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t, bucket.Spec{Capacity: 3 * bucket.Token, Rate: perSecond(1)})
		l.store.Store = slowStore{l.store.Store, 10 * time.Millisecond}
		var chans []<-chan left
		for range 6 {
			chans = append(chans, l.enter(t.Context(), l.request(1)))
		}
		for i, after := range []time.Duration{10, 10, 10} {
			l.leaves("one of three", chans[i], after*time.Millisecond, nil)
		}
		var after []time.Duration // these three came back from the store at one instant
		for _, ch := range chans[3:] {
			after = append(after, (<-ch).after)
		}
		slices.Sort(after)
		for i, got := range after {
			if want := time.Duration(i+1) * time.Second; got < want || got > want+50*time.Millisecond {
				t.Errorf("waiter %d left after %v, want about %v", i+3, got, want)
			}
		}
	})
}

// A slowStore answers late.
type slowStore struct {
	mete.Store
	late time.Duration
}

func (s slowStore) Take(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	dst, allowed, err := s.Store.Take(ctx, dst, charges, mode)
	time.Sleep(s.late)
	return dst, allowed, err
}

// Random waits, costs and cancellations all end in order, and no waiter or place is lost.
func TestWait_Chaos(t *testing.T) {
	for name, spec := range algorithms {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLine(t, spec)
				var wg sync.WaitGroup
				for i := range 300 {
					wg.Go(func() {
						ctx, cancel := context.WithCancel(t.Context())
						defer cancel()
						time.AfterFunc(time.Duration(i*7919%100_000)*time.Millisecond, cancel)
						time.Sleep(time.Duration(i*104729%5000) * time.Millisecond)
						req := l.request(1)
						req.MaxWait = time.Duration(i%3) * 30 * time.Second
						l.Wait(ctx, req)
					})
				}
				wg.Wait()
				time.Sleep(3 * time.Second) // full again
				if _, err := l.Wait(t.Context(), l.request(1)); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// BenchmarkWait_Queue queues 10,000 waiters behind a sleeping one, and measures the cost per waiter.
func BenchmarkWait_Queue(b *testing.B) {
	const waiters = 10_000
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		b.Fatal(err)
	}
	l, err := mete.New(store, nil, mete.Config{})
	if err != nil {
		b.Fatal(err)
	}
	fast := limit(b, 1, "100000000/1s")
	b.ReportAllocs()
	var draining time.Duration
	for b.Loop() {
		var wg sync.WaitGroup
		first := one("k", fast, 50_000_000*bucket.Token) // half a second
		wg.Go(func() { l.Wait(b.Context(), first) })
		begin := time.Now()
		for range waiters {
			wg.Go(func() {
				if _, err := l.Wait(b.Context(), one("k", fast, bucket.Token)); err != nil {
					b.Error(err)
				}
			})
		}
		wg.Wait()
		draining += time.Since(begin) - 500*time.Millisecond
	}
	b.ReportMetric(float64(draining.Nanoseconds())/float64(b.N)/waiters, "ns/waiter")
}

// BenchmarkWait_Free waits without need.
func BenchmarkWait_Free(b *testing.B) {
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		b.Fatal(err)
	}
	l, err := mete.New(store, nil, mete.Config{})
	if err != nil {
		b.Fatal(err)
	}
	req := one("k", limit(b, 1_000_000_000, "1000000000/1s"), bucket.Token)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.Wait(b.Context(), req); err != nil {
			b.Fatal(err)
		}
	}
}
