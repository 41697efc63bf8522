// SPDX-License-Identifier: Apache-2.0

package memstore_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/store"
)

func slotCharge(t testing.TB, key string, most, id int) []store.Charge {
	t.Helper()
	l, _, err := bucket.Spec{Algorithm: bucket.AlgorithmConcurrency, Rate: bucket.Rate{Tokens: bucket.Tokens(most) * bucket.Token, Per: 10 * time.Second}}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return []store.Charge{{Key: key, Limit: l, Cost: bucket.Token, Slot: bucket.SlotID{1, byte(id), byte(id >> 8)}}}
}

func takeSlot(t testing.TB, s *memstore.Store, charges []store.Charge) bool {
	t.Helper()
	_, allowed, err := s.Take(t.Context(), nil, charges, mete.Mode{})
	if err != nil {
		t.Fatal(err)
	}
	return allowed
}

// TestSave_KeepsSlots: a restart frees no slot, and a slot ends at the same time as without it.
func TestSave_KeepsSlots(t *testing.T) {
	now := bucket.Instant(1_000_000_000)
	config := memstore.Config{Now: func() bucket.Instant { return now }}
	s := mustNew(t, config)
	takeSlot(t, s, slotCharge(t, "tenant:a", 2, 1))
	now += 4_000_000
	takeSlot(t, s, slotCharge(t, "tenant:a", 2, 2))
	path := filepath.Join(t.TempDir(), "buckets")
	if err := s.Save(path); err != nil {
		t.Fatal(err)
	}
	restored, err := memstore.Restore(path, config)
	if err != nil {
		t.Fatal(err)
	}
	if takeSlot(t, restored, slotCharge(t, "tenant:a", 2, 3)) || restored.Stats().Slots != 2 {
		t.Errorf("a restart freed a slot: %+v", restored.Stats())
	}
	now += 6_000_000
	if !takeSlot(t, restored, slotCharge(t, "tenant:a", 2, 3)) {
		t.Error("a restored slot did not end with its lease")
	}
	if removed, _, err := restored.ClearFamilies(t.Context(), []string{"tenant:"}, ""); err != nil || removed > 1 {
		t.Errorf("removed %d, %v", removed, err)
	}
}

// TestSlots_AreBounded: a flood of slots cannot exceed MaxKeys, and slots that have ended make room again.
func TestSlots_AreBounded(t *testing.T) {
	now := bucket.Instant(1_000_000_000)
	s := mustNew(t, memstore.Config{MaxKeys: 100, Now: func() bucket.Instant { return now }})
	admitted := 0
	for i := range 300 {
		if takeSlot(t, s, slotCharge(t, fmt.Sprint("flood:", i), 1, 1)) {
			admitted++
		}
	}
	if stats := s.Stats(); admitted != 100 || stats.Slots != 100 || stats.Closed != 200 {
		t.Errorf("admitted %d, %+v", admitted, stats)
	}
	now += 10_000_000
	if !takeSlot(t, s, slotCharge(t, "late", 1, 1)) || s.Stats().Slots > 20 { // one stripe was in use
		t.Errorf("slots that have ended leave no room: %+v", s.Stats())
	}
}

// TestSlots_OpenWhenFull: a charge with OnFullOpen passes a full store without a slot, and so does its renewal.
func TestSlots_OpenWhenFull(t *testing.T) {
	now := bucket.Instant(1_000_000_000)
	s := mustNew(t, memstore.Config{MaxKeys: 1, Now: func() bucket.Instant { return now }})
	takeSlot(t, s, slotCharge(t, "first", 1, 1))
	open := slotCharge(t, "open", 1, 2)
	open[0].OnFull = store.OnFullOpen
	for _, mode := range []mete.Mode{{}, {Renew: true}, {}} {
		snaps, allowed, _ := s.Take(t.Context(), nil, open, mode)
		if !allowed || snaps[0].Spill != bucket.SpillOpened || s.Stats().Slots != 1 {
			t.Errorf("%+v: got %v, %v, %+v", mode, allowed, snaps, s.Stats())
		}
	}
	if takeSlot(t, s, slotCharge(t, "first", 1, 3)) || s.Stats().Opened != 3 {
		t.Errorf("the held slot was taken again: %+v", s.Stats())
	}
}

// BenchmarkSlot takes and releases a slot, beside other slots of its key. BenchmarkSlot/bucket is the take of a token
// bucket: a take and release may cost three times as much.
func BenchmarkSlot(b *testing.B) {
	s, err := memstore.New(memstore.Config{})
	if err != nil {
		b.Fatal(err)
	}
	tokens, err := bucket.NewLimit(1e9*bucket.Token, bucket.Rate{Tokens: 1e6 * bucket.Token, Per: time.Second})
	if err != nil {
		b.Fatal(err)
	}
	var snaps []bucket.Snapshot
	b.Run("bucket", func(b *testing.B) {
		charges := []store.Charge{{Key: "tenant:b", Limit: tokens, Cost: bucket.Token}}
		b.ReportAllocs()
		for b.Loop() {
			snaps, _, _ = s.Take(b.Context(), snaps[:0], charges, mete.Mode{})
		}
	})
	for _, others := range []int{0, 100, 9_999} {
		b.Run(fmt.Sprint("others=", others), func(b *testing.B) {
			key := fmt.Sprint("tenant:", others)
			for i := range others {
				snaps, _, _ = s.Take(b.Context(), snaps[:0], slotCharge(b, key, others+1, i+2), mete.Mode{})
			}
			charges := slotCharge(b, key, others+1, 1)
			refunds := []mete.Refund{{Charge: charges[0]}}
			b.ReportAllocs()
			for b.Loop() {
				snaps, _, _ = s.Take(b.Context(), snaps[:0], charges, mete.Mode{})
				_ = s.Refund(b.Context(), refunds, "")
			}
			if !snaps[0].Allowed {
				b.Errorf("denied: %v", snaps)
			}
		})
	}
}
