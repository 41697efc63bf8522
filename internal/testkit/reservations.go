// SPDX-License-Identifier: Apache-2.0

package testkit

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/policy"
)

// BenchmarkReservations compares a request to a language model, which is reserved and settled with less, with a plain take of
// the same request. One caller and 32 concurrent callers alternate rounds of both, so that other load on the machine affects
// both. It reports the medians and their ratio. Each caller
// has a bucket for takes and one for reservations. A bucket that is full before each call needs no history: see [bucket.Row.WithAwait].
func BenchmarkReservations(b *testing.B, s mete.Store) {
	b.Run("bucket=full", func(b *testing.B) { benchmarkReservations(b, s, "full", 1_000_000_000) })
	b.Run("bucket=used", func(b *testing.B) { benchmarkReservations(b, s, "used", 1000) })
}

func benchmarkReservations(b *testing.B, s mete.Store, name string, perSecond int) {
	m, err := policy.Load(fmt.Appendf(nil, `{"rules": [{"name": %q, "limit_keys": ["header:x-key"], "deadline": "10s", "rate": "%d/1s",
		"burst": 100000000000, "cost_source": "ai:tokens"}]}`, name, perSecond), policy.Options{})
	if err != nil {
		b.Fatal(err)
	}
	l, err := mete.New(s, m, mete.Config{})
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	take := func(req mete.Request) error {
		_, err := l.Take(ctx, req)
		return err
	}
	reserve := func(req mete.Request) error {
		r, err := l.Reserve(ctx, req)
		if err != nil {
			return err
		}
		return r.Finish(ctx, policy.Response{Status: 200, Usage: &policy.TokenUsage{Input: 100, Output: 150}})
	}
	for _, callers := range []int{1, 32} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			const each = 16 // calls of a caller in a round
			round := func(prefix string, call func(mete.Request) error) float64 {
				began := time.Now()
				var all sync.WaitGroup
				for i := range callers {
					req := mete.Request{Attributes: mete.Attrs{"ai:prompt_tokens": "100", "ai:max_tokens": "200", "header:x-key": fmt.Sprint(prefix, i)}}
					all.Go(func() {
						for range each {
							if err := call(req); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				all.Wait()
				return float64(time.Since(began)) / float64(each*callers)
			}
			var takes, reservations []float64
			for b.Loop() {
				takes = append(takes, round("take", take))
				reservations = append(reservations, round("reserve", reserve))
			}
			slices.Sort(takes)
			slices.Sort(reservations)
			one, both := takes[len(takes)/2], reservations[len(reservations)/2]
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(one, "ns/take")
			b.ReportMetric(both, "ns/reserve+finish")
			b.ReportMetric(both/one, "reserve+finish/take")
		})
	}
}
