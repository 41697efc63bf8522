// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"context"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/guard"
	"github.com/metehq/mete/store"
)

// a yes store admits everything at no cost, to measure the guard alone.
type yes struct{}

func (yes) Take(_ context.Context, dst []bucket.Snapshot, charges []store.Charge, _ mete.Mode) ([]bucket.Snapshot, bool, error) {
	for range charges {
		dst = append(dst, bucket.Snapshot{Allowed: true})
	}
	return dst, true, nil
}
func (yes) Refund(context.Context, []mete.Refund, string) error { return nil }
func (yes) Reset(context.Context, []string) error               { return nil }

// BenchmarkTake_Allowed measures the overhead of a guard for an admitted take.
func BenchmarkTake_Allowed(b *testing.B) {
	for _, bm := range []struct {
		name   string
		config guard.Config
	}{
		{"none", guard.Config{NoBreaker: true}},
		{"breaker", guard.Config{}},
	} {
		s := guarded(b, yes{}, bm.config)
		charges := []store.Charge{charge("rule:user:0123456789", slow(b), 1)}
		b.Run(bm.name, func(b *testing.B) {
			b.ReportAllocs()
			dst := make([]bucket.Snapshot, 0, 1)
			for b.Loop() {
				s.Take(b.Context(), dst, charges, mete.Mode{})
			}
		})
		b.Run(bm.name+"/parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				dst := make([]bucket.Snapshot, 0, 1)
				for pb.Next() {
					s.Take(context.Background(), dst, charges, mete.Mode{})
				}
			})
		})
	}
}
