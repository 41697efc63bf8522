// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/redisstore"
	"github.com/metehq/mete/store"
)

// TestExpiry_OfSlowBuckets proves that keys live for as many hours as their buckets need, for all variants of
// takes.
func TestExpiry_OfSlowBuckets(t *testing.T) {
	client := connect(t, proctest.StartRedis(t).Addr)
	s, err := redisstore.New(client, redisstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	rate := bucket.Rate{Tokens: 5 * bucket.Token, Per: 10 * time.Hour}
	for i, spec := range []bucket.Spec{
		{Capacity: 5 * bucket.Token, Rate: rate},
		{Algorithm: bucket.AlgorithmStepped, Capacity: 5 * bucket.Token, Rate: rate},
		{Algorithm: bucket.AlgorithmSlidingWindow, Rate: rate},
		{Algorithm: bucket.AlgorithmSlidingLog, Rate: rate},
	} {
		l, _, err := spec.Compile()
		if err != nil {
			t.Fatal(err)
		}
		for j, mode := range []mete.Mode{{}, {UpTo: true}} {
			for n := range 3 {
				charges := make([]store.Charge, 0, n+1)
				for k := range n + 1 {
					charges = append(charges, store.Charge{Key: fmt.Sprint(i, j, n, k), Limit: l, Cost: bucket.Token})
				}
				for range 2 {
					snaps, allowed, err := s.Take(t.Context(), nil, charges, mode)
					if err != nil || !allowed {
						t.Fatalf("%v: allowed %v, %v", l, allowed, err)
					}
					for k, c := range charges {
						livesFor(t, client, "tb:"+c.Key, snaps[k].FullAfter())
					}
				}
			}
		}
	}
}
