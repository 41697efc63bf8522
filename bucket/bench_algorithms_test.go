// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
)

// hundred returns a limit of this kind with 100 tokens per second.
func hundred(t testing.TB, kind bucket.Spec) bucket.Limit {
	t.Helper()
	kind.Rate = bucket.PerSecond(100 * bucket.Token)
	if kind.Anchor == bucket.AnchorCalendar {
		kind.Calendar = bucket.Calendar{Window: bucket.CalendarDay, Zone: "Europe/Berlin"}
		kind.Rate.Per = kind.Calendar.Window.Length()
	}
	kind.Capacity = 100 * bucket.Token
	if kind.Queue > 0 {
		kind.Capacity, kind.Queue = bucket.Token, 99*bucket.Token
	}
	l, _, err := kind.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return l.ForKey("key")
}

// TestEveryAlgorithm_AllocatesNothing: only a sliding log allocates, for its entries. In place, it allocates
// only when they outgrow their memory.
func TestEveryAlgorithm_AllocatesNothing(t *testing.T) {
	for _, kind := range kinds {
		l, now := hundred(t, kind.spec), bucket.Instant(1<<50)
		var s, forgotten bucket.State
		var snap bucket.Snapshot
		for _, tt := range []struct {
			name string
			log  float64 // allocations per call that a sliding log may need
			run  func()
		}{
			{"SpendOn", 0.2, func() { l.SpendOn(&s, now, bucket.Token, 0).Show(&snap, &l, bucket.Token, now) }},
			{"Peek", 0, func() { l.Peek(s, now, bucket.Token, time.Second) }},
			{"Peek", 0, func() { snap = l.Peek(s, now, 50*bucket.Token, 0) }},
			{"Snapshot", 0, func() { now += bucket.Instant(snap.FullAfter()+snap.Wait())&1 + bucket.Instant(snap.Remaining())&1 }},
			{"Full", 0, func() { l.Full(s, now) }},
			{"For", 0, func() { l.ForKey("key") }},
			{"Take", 3, func() { forgotten, snap = l.Take(forgotten, now, bucket.Token) }},
			{"Refund", 3, func() { forgotten = l.Refund(forgotten, now, 300) }},
		} {
			most := 0.0
			if kind.spec.Algorithm == bucket.AlgorithmSlidingLog {
				most = tt.log
			}
			if n := testing.AllocsPerRun(1000, func() { tt.run(); now += 10_000 }); n > most {
				t.Errorf("%s, %s: %v allocations a call, want at most %v", kind.name, tt.name, n, most)
			}
		}
	}
}

func BenchmarkAlgorithms(b *testing.B) {
	for _, kind := range kinds {
		l := hundred(b, kind.spec)
		for _, bb := range []struct {
			name string
			step bucket.Instant // between two takes
		}{{"admitted", 10_000}, {"denied", 0}, {"full", 10_000_000}} {
			b.Run(kind.name+"/"+bb.name, func(b *testing.B) {
				b.ReportAllocs()
				var s bucket.State
				now := bucket.Instant(1 << 50)
				for range 200 {
					l.SpendOn(&s, now, bucket.Token, 0)
					now += bb.step / 2
				}
				for b.Loop() {
					now += bb.step
					l.SpendOn(&s, now, bucket.Token, 0)
				}
			})
		}
	}
}

// BenchmarkSlidingLog_Bound measures the longest log: a denial, and an admission that copies it.
func BenchmarkSlidingLog_Bound(b *testing.B) {
	l := slidingLog(b, bucket.MaxLogTokens, time.Hour)
	var s bucket.State
	for i := range bucket.Instant(bucket.MaxLogEntries) {
		l.SpendOn(&s, i, 999, 0)
	}
	for _, bb := range []struct {
		name string
		cost bucket.Tokens
	}{{"denied", l.Capacity()}, {"copied", 1}} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				l.Take(s, 1e6, bb.cost)
			}
		})
	}
}
