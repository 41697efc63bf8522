// SPDX-License-Identifier: Apache-2.0

package topkeys_test

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/topkeys"
)

func newTracker(tb testing.TB, c topkeys.Config) *topkeys.Tracker {
	tb.Helper()
	tr, err := topkeys.New(c, 0)
	if err != nil {
		tb.Fatal(err)
	}
	return tr
}

// BenchmarkRecord measures one record: in a flood of keys that displace each other, with a usual distribution,
// and with one key.
func BenchmarkRecord(b *testing.B) {
	zipf := rand.NewZipf(rand.New(testseed.PCG(1, 2)), 1.2, 1, 1<<20)
	const many = 1 << 16
	for _, bb := range []struct {
		name string
		keys []string
	}{
		{"flood", keysOf(many, func(i int) uint64 { return uint64(i) })},
		{"zipf", keysOf(many, func(int) uint64 { return zipf.Uint64() })},
		{"one", keysOf(1, func(i int) uint64 { return uint64(i) })},
	} {
		b.Run(bb.name, func(b *testing.B) {
			tr := newTracker(b, topkeys.Config{})
			warm(tr, bb.keys)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				tr.Record(1, topkeys.KindDenied, "free", bb.keys[i%len(bb.keys)], time.Second)
				i++
			}
		})
		b.Run(bb.name+"-parallel", func(b *testing.B) {
			tr := newTracker(b, topkeys.Config{})
			warm(tr, bb.keys)
			b.ReportAllocs()
			var next atomic.Int64
			b.RunParallel(func(pb *testing.PB) {
				i := int(next.Add(1)) * 7919
				for pb.Next() {
					tr.Record(1, topkeys.KindDenied, "free", bb.keys[i%len(bb.keys)], time.Second)
					i++
				}
			})
			s := tr.Stats()
			b.ReportMetric(float64(s.Dropped)/float64(s.Dropped+s.Recorded), "dropped/op")
		})
	}
}

// warm has the tracker take what memory it needs.
func warm(tr *topkeys.Tracker, keys []string) {
	for _, key := range keys {
		tr.Record(1, topkeys.KindDenied, "free", key, 0)
	}
}

func BenchmarkTop(b *testing.B) {
	tr := newTracker(b, topkeys.Config{})
	for i, key := range keysOf(1<<16, func(i int) uint64 { return uint64(i) }) {
		tr.Record(bucket.Instant(i*1000), topkeys.KindDenied, "free", key, 0)
	}
	b.ReportAllocs()
	for b.Loop() {
		tr.Top(1<<16*1000, "free", topkeys.KindDenied, 0)
	}
}
