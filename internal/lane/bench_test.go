// SPDX-License-Identifier: Apache-2.0

package lane_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/metehq/mete/internal/lane"
)

// An instant is a batch with a call that takes no time, to measure the lane alone.
type instant []*ask

func (b *instant) Reset()                          { *b = (*b)[:0] }
func (b *instant) Add(a *ask) bool                 { *b = append(*b, a); return true }
func (b *instant) Asks() []*ask                    { return *b }
func (b *instant) Run(time.Duration) time.Duration { return 1 }

func instantly() *lane.Lane[*ask] {
	return lane.New(lane.Config[*ask]{
		MaxBatch: 512, MaxQueue: 1 << 14, MinInFlight: 2, MaxInFlight: 16, Timeout: time.Second,
		NewBatch: func() lane.Batch[*ask] { return new(instant) },
	}).At(0)
}

func TestDo_AllocatesNothing(t *testing.T) {
	cancelable, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, tt := range []struct {
		name   string
		ctx    context.Context
		within time.Duration
	}{
		{"alone", context.Background(), 0},
		{"alone, within a time", cancelable, time.Second},
		{"through the queue", cancelable, 0},
	} {
		l, a := instantly(), new(ask)
		if got := testing.AllocsPerRun(1000, func() {
			if _, err := l.Do(tt.ctx, a, tt.within); err != nil {
				t.Error(err)
			}
		}); got != 0 {
			t.Errorf("%s: %v allocations, want none", tt.name, got)
		}
	}
}

// BenchmarkDo measures the overhead of a lane per ask.
func BenchmarkDo(b *testing.B) {
	b.Run("alone", func(b *testing.B) {
		b.ReportAllocs()
		l, a, ctx := instantly(), new(ask), context.Background()
		for b.Loop() {
			_, _ = l.Do(ctx, a, 0)
		}
	})
	b.Run("callers=1", func(b *testing.B) {
		b.ReportAllocs()
		l, a, ctx := instantly(), new(ask), b.Context()
		for b.Loop() {
			_, _ = l.Do(ctx, a, 0)
		}
	})
	for _, callers := range []int{16, 256} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism((callers + 1) / runtime.GOMAXPROCS(0))
			l, ctx := instantly(), b.Context()
			b.RunParallel(func(pb *testing.PB) {
				for a := new(ask); pb.Next(); {
					_, _ = l.Do(ctx, a, 0)
				}
			})
		})
	}
}
