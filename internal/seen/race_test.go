// SPDX-License-Identifier: Apache-2.0

package seen_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/seen"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// A take after a refund by the same client gets the tokens, even while the store denies other takes of the same
// keys.
func TestTake_RacesWithRefunds(t *testing.T) {
	inner, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s := remember(inner, seen.Config{DenyFor: time.Hour, DenyKeys: 16})
	l := compile(t, bucket.Spec{Capacity: bucket.Token, Rate: bucket.Rate{Tokens: 1, Per: time.Hour}})
	ctx, stop := context.WithCancel(t.Context())
	var hammering sync.WaitGroup
	var denied atomic.Int64
	for worker := range 4 {
		hammering.Go(func() {
			r := rand.New(testseed.PCG(1, uint64(worker)))
			for ctx.Err() == nil {
				// One token more than available: denied, and nothing is spent.
				charges := []store.Charge{charge(fmt.Sprint("key", r.IntN(8)), l, 1)}
				charges[0].Cost++
				if _, allowed, err := s.Take(ctx, nil, charges, store.Mode{}); allowed || err != nil {
					t.Errorf("more than the capacity: allowed %v, %v", allowed, err)
				}
				charges[0].Cost = bucket.Token
				s.Take(ctx, nil, charges, store.Mode{DryRun: true})
				denied.Add(1)
			}
		})
	}
	var owners sync.WaitGroup
	for k := range 2 {
		owners.Go(func() {
			charges := []store.Charge{charge(fmt.Sprint("key", k), l, 1)}
			for i := range 2000 {
				if _, allowed, err := s.Take(ctx, nil, charges, store.Mode{}); !allowed || err != nil {
					t.Errorf("%q, refund %d: allowed %v, %v", charges[0].Key, i, allowed, err)
					return
				}
				if err := s.Refund(ctx, storetest.Refunds(charges...), ""); err != nil {
					t.Error(err)
				}
			}
		})
	}
	owners.Wait()
	stop()
	hammering.Wait()
	if got := s.memory.Stats(); got.Denied == 0 || got.Denying > 16 {
		t.Errorf("%+v after %d denials", got, denied.Load())
	}
}
