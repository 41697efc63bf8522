// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
)

func TestArithmetic_AllocatesNothing(t *testing.T) {
	l := limit(t, "10", "7/1m")
	states := make([]bucket.State, 3)
	charges := []bucket.Charge{{Limit: l, Cost: 1000}, {Limit: limit(t, "5", "1/1s"), Cost: 500}, {Limit: limit(t, "1", "1/1h"), Cost: 1}}
	dst := make([]bucket.Snapshot, 0, len(states))
	var s bucket.State
	var snap bucket.Snapshot
	now := bucket.Instant(0)
	for _, tt := range []struct {
		name string
		run  func()
	}{
		{"Take", func() { s, snap = l.Take(s, now, 1000) }},
		{"Reserve", func() { s, snap = l.Reserve(s, now, 1000, time.Minute) }},
		{"Spend", func() { _, v := l.Spend(s, now, 1000, time.Minute); v.Show(&snap, &l, 1000, now) }},
		{"Peek", func() { snap = l.Peek(s, now, 1000, time.Minute) }},
		{"Refund", func() { s = l.Refund(s, now, 300) }},
		{"TakeAll", func() { dst, _ = bucket.TakeAll(dst[:0], states, charges, now, 0) }},
		{"Snapshot", func() { now += bucket.Instant(snap.FullAfter()+snap.Wait())&1 + bucket.Instant(snap.Remaining())&1 }},
	} {
		if n := testing.AllocsPerRun(100, func() { tt.run(); now += 100_000 }); n != 0 {
			t.Errorf("%s: %v allocations a call, want 0", tt.name, n)
		}
	}
}
