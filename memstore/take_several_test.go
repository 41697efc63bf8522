// SPDX-License-Identifier: Apache-2.0

package memstore_test

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// Many goroutines take from one bucket, from several of every algorithm, and from new ones that rebuild the
// shards. The clock stands still, so each bucket's admissions and rest add up to its capacity.
func TestTake_ConservesUnderConcurrency(t *testing.T) {
	clock := storetest.NewClock()
	s := mustNew(t, memstore.Config{MaxKeys: 1 << 20, Now: clock.Now})
	type key struct {
		name  string
		limit bucket.Limit
		spent atomic.Int64
	}
	var keys []*key
	for i, l := range everyAlgorithm(t) {
		if l.Queued() {
			continue // what waits is not seen in what remains
		}
		for j := range 3 {
			name := strconv.Itoa(i) + "/" + strconv.Itoa(j)
			keys = append(keys, &key{name: name, limit: l.ForKey(name)})
		}
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			r := rand.New(testseed.PCG(uint64(g), 9))
			for step := range 3000 {
				var charges []store.Charge
				var chosen []*key
				for i, k := range keys {
					if r.IntN(len(keys)) < 1+step%3 || i == g {
						charges = append(charges, store.Charge{Key: k.name, Limit: k.limit, Cost: bucket.Tokens(r.Int64N(60))})
						chosen = append(chosen, k)
					}
				}
				if step%4 == 0 { // a new one, somewhere
					charges = append(charges, store.Charge{Key: "~" + strconv.Itoa(g*10_000+step), Limit: keys[0].limit, Cost: 1})
				}
				_, allowed, err := s.Take(t.Context(), nil, charges, mete.Mode{})
				if err != nil {
					t.Error(err)
					return
				}
				for i, k := range chosen {
					if allowed {
						k.spent.Add(int64(charges[i].Cost))
					}
				}
			}
		})
	}
	wg.Wait()
	for _, k := range keys {
		snap := take(t, s, k.name, k.limit, 0)
		if left := k.limit.Capacity() - bucket.Tokens(k.spent.Load()); snap.Remaining() != left {
			t.Errorf("%s (%v): admitted %v and holds %v", k.name, k.limit, bucket.Tokens(k.spent.Load()), snap.Remaining())
		}
	}
	memstore.CheckInvariants(t, s)
}
