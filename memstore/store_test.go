// SPDX-License-Identifier: Apache-2.0

package memstore_test

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/internal/usagetest"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T, now func() bucket.Instant) mete.Store {
		return mustNew(t, memstore.Config{Now: now})
	})
}

// TakeOne decides like Take.
func TestTakeOne_IsTake(t *testing.T) {
	clock := storetest.NewClock()
	one, all := mustNew(t, memstore.Config{MaxKeys: 40, Now: clock.Now}), mustNew(t, memstore.Config{MaxKeys: 40, Now: clock.Now})
	limits := []bucket.Limit{mustLimit(t, 5*bucket.Token, bucket.Token), mustLimit(t, 7*bucket.Token, 2*bucket.Token)}
	r := rand.New(testseed.PCG(1, 2))
	for step := range 5000 {
		clock.Advance(r.Int64N(100_000))
		l := limits[r.IntN(2)]
		key, cost := strconv.Itoa(r.IntN(30)), bucket.Tokens(r.Int64N(6000))
		v, now := one.TakeOne(key, &l, cost)
		want := take(t, all, key, l, cost)
		var got bucket.Snapshot
		if v.Show(&got, &l, cost, now); got != want || v.Allowed() != want.Allowed || v.RetryAfter() != want.RetryAfter {
			t.Fatalf("step %d: TakeOne %+v, Take %+v", step, got, want)
		}
	}
	never, _ := one.TakeOne("k", &limits[0], 6*bucket.Token)
	if never.Allowed() || never.RetryAfter() != bucket.Never {
		t.Errorf("6 of 5: %+v; want never", never)
	}
	if got := testing.AllocsPerRun(100, func() { one.TakeOne("k", &limits[0], 1) }); got != 0 {
		t.Errorf("%v allocations a call, want 0", got)
	}
}

func TestStore_Families(t *testing.T) {
	storetest.RunFamilies(t, func(t *testing.T, now func() bucket.Instant) mete.Store {
		return mustNew(t, memstore.Config{Now: now})
	})
}

func TestStore_Penalties(t *testing.T) {
	storetest.RunPenalties(t, func(t *testing.T, now func() bucket.Instant) mete.Store {
		return mustNew(t, memstore.Config{Now: now})
	})
}

func TestSettleUsage(t *testing.T) {
	usagetest.Run(t, func(t *testing.T, now func() bucket.Instant) mete.Store { return mustNew(t, memstore.Config{Now: now}) })
}

func TestHolds(t *testing.T) {
	storetest.RunHolds(t, func(t *testing.T, now func() bucket.Instant) mete.Store {
		return mustNew(t, memstore.Config{Now: now})
	})
}
