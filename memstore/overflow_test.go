// SPDX-License-Identifier: Apache-2.0

package memstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/storetest"
)

// A key that leaves the overflow bucket starts with its current deficit: the refill since then belongs to the key.
func TestStore_LeavingOverflowRefills(t *testing.T) {
	quick := memstore.LimitOf(t, bucket.Token, bucket.Token, time.Microsecond)
	for _, l := range everyAlgorithm(t) {
		if l.Queued() {
			continue
		}
		clock := storetest.NewClock()
		s := mustNew(t, memstore.Config{MaxKeys: 50, Now: clock.Now})
		model := bucket.State{}
		clock.Advance(1_234) // into an interval
		for i := range 50 {
			take(t, s, fmt.Sprint("quick", i), quick, bucket.Token)
		}
		shared := l.ForKey("")
		model, want := shared.Take(model, clock.Now(), l.Capacity())
		want.Spill = bucket.SpillShared
		if got := take(t, s, "spills", l, l.Capacity()); got != want || s.Stats().Overflowed != 1 {
			t.Fatalf("%v: the overflow bucket shows %+v, want %+v", l, got, want)
		}
		clock.Advance(want.FullAfter().Microseconds() * 2 / 3) // now there is room
		found := 0
		for i := range 20 {
			key := fmt.Sprint("new", i)
			own := l.ForKey(key)
			_, want := own.Take(model, clock.Now(), bucket.Token)
			got := take(t, s, key, own, bucket.Token)
			if s.Stats().Overflowed > 1 {
				break // no more room was found
			}
			found++
			if got.Allowed != want.Allowed || got.RetryAfter != want.RetryAfter || got.Remaining() != want.Remaining() {
				t.Errorf("%v: key %d begins with %v, retry after %v; want %v, %v", l, i, got.Remaining(), got.RetryAfter, want.Remaining(), want.RetryAfter)
			}
		}
		if found == 0 {
			t.Errorf("%v: no key left the overflow bucket", l)
		}
		memstore.CheckInvariants(t, s)
	}
}
