// SPDX-License-Identifier: Apache-2.0

package memstore_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/store"
)

// million returns a store of a million keys that are not full for hours.
func million(b *testing.B, algorithm bucket.Algorithm) (*memstore.Store, []string) {
	limit, _, err := bucket.Spec{Algorithm: algorithm, Capacity: 100 * bucket.Token, Rate: bucket.Rate{Tokens: 100 * bucket.Token, Per: 100 * time.Hour}}.Compile()
	if err != nil {
		b.Fatal(err)
	}
	s, keys := mustNew(b, memstore.Config{MaxKeys: 2 << 20}), benchKeys(1_000_000)
	for _, key := range keys {
		s.TakeOne(key, &limit, bucket.Token)
	}
	return s, keys
}

func BenchmarkSave(b *testing.B) {
	for _, algorithm := range []bucket.Algorithm{bucket.AlgorithmContinuous, bucket.AlgorithmSlidingWindow, bucket.AlgorithmSlidingLog} {
		b.Run(algorithm.String(), func(b *testing.B) {
			s, keys := million(b, algorithm)
			path := filepath.Join(b.TempDir(), "buckets")
			for b.Loop() {
				if err := s.Save(path); err != nil {
					b.Fatal(err)
				}
			}
			info, err := os.Stat(path)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(info.Size())/float64(len(keys)), "bytes/key")
		})
	}
}

func BenchmarkRestore(b *testing.B) {
	s, keys := million(b, bucket.AlgorithmContinuous)
	path := saved(b, s)
	for b.Loop() {
		restored, err := memstore.Restore(path, memstore.Config{MaxKeys: 2 << 20})
		if err != nil || restored.Stats().Keys != int64(len(keys)) {
			b.Fatal(restored.Stats(), err)
		}
	}
}

// BenchmarkTakeWhileSaving measures the delay of takes by a save.
func BenchmarkTakeWhileSaving(b *testing.B) {
	s, keys := million(b, bucket.AlgorithmContinuous)
	limit := mustLimit(b, 1000*bucket.Token, bucket.Token)
	path := filepath.Join(b.TempDir(), "buckets")
	for _, saves := range []bool{false, true} {
		b.Run(fmt.Sprint("saving ", saves), func(b *testing.B) {
			ctx, cancel := context.WithCancel(b.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for saves && ctx.Err() == nil {
					if err := s.Save(path); err != nil {
						b.Error(err)
					}
				}
			}()
			charges := []store.Charge{{Limit: limit, Cost: bucket.Token}}
			times := make([]time.Duration, 0, 1<<20)
			for i := 0; b.Loop(); i++ {
				charges[0].Key = keys[i*7919%len(keys)]
				begin := time.Now()
				s.Take(ctx, nil, charges, mete.Mode{UpTo: i%2 == 0}) // every other under the shard's lock
				if took := time.Since(begin); len(times) < cap(times) {
					times = append(times, took)
				}
				runtime.Gosched()
			}
			cancel()
			<-ended
			slices.Sort(times)
			at := func(per100k int) float64 { return float64(times[len(times)*per100k/100_000].Nanoseconds()) / 1000 }
			b.ReportMetric(at(50_000), "p50-µs")
			b.ReportMetric(at(99_900), "p99.9-µs")
			b.ReportMetric(at(99_990), "p99.99-µs")
		})
	}
}
