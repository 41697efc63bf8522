// SPDX-License-Identifier: Apache-2.0

package memstore_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
)

// A shard grows while takes change its second words, under the race detector.
func TestStore_GrowsDuringTakes(t *testing.T) {
	s, err := memstore.New(memstore.Config{Now: func() bucket.Instant { return bucket.At(time.Now()) }})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := bucket.NewLimit(1_000_000*bucket.Token, bucket.PerSecond(1000*bucket.Token))
	if err != nil {
		t.Fatal(err)
	}
	window, _, err := bucket.Spec{Algorithm: bucket.AlgorithmSlidingWindow, Rate: bucket.PerSecond(1000 * bucket.Token)}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 60_000 {
				s.TakeOne(fmt.Sprint("hot", i%500), &plain, bucket.Token)
				s.TakeOne(fmt.Sprint("window", i%50), &window, bucket.Token)
				if i%3 == 0 {
					s.TakeOne(fmt.Sprint("new", g, i), &plain, bucket.Token)
				}
			}
		})
	}
	wg.Wait()
}
