// SPDX-License-Identifier: Apache-2.0

package memstore_test

import (
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/store"
)

// BenchmarkVersions takes from one key under two alternating limits, as in a deploy.
func BenchmarkVersions(b *testing.B) {
	s := mustNew(b, memstore.Config{})
	limits := []bucket.Limit{mustLimit(b, 1<<40, bucket.Token), mustLimit(b, 1<<39, bucket.Token)}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if v, _ := s.TakeOne("k", &limits[i&1], 1); !v.Allowed() {
			b.Fatal("denied")
		}
	}
}

// BenchmarkCancel takes from one key and cancels.
func BenchmarkCancel(b *testing.B) {
	s := mustNew(b, memstore.Config{})
	charges := []store.Charge{{Key: "k", Limit: mustLimit(b, 1<<40, bucket.Token), Cost: bucket.Token}}
	refunds := []mete.Refund{{Charge: charges[0]}}
	var snaps []bucket.Snapshot
	b.ReportAllocs()
	for b.Loop() {
		snaps, _, _ = s.Take(b.Context(), snaps[:0], charges, mete.Mode{})
		refunds[0].Taken = snaps[0].Taken()
		if err := s.Refund(b.Context(), refunds, ""); err != nil {
			b.Fatal(err)
		}
	}
}
