// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/guard"
	"github.com/metehq/mete/memstore"
)

// A store in memory stands for a remote one.
func Example() {
	far, err := memstore.New(memstore.Config{})
	if err != nil {
		log.Fatal(err)
	}
	store, err := guard.New(far, guard.Config{
		OnChange: func(from, to guard.State) { log.Printf("the store's breaker is %s, and was %s", to, from) },
	})
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := mete.New(store, nil, mete.Config{DenyFor: time.Second})
	if err != nil {
		log.Fatal(err)
	}
	limit, err := bucket.NewLimit(3*bucket.Token, bucket.Rate{Tokens: bucket.Token, Per: time.Hour})
	if err != nil {
		log.Fatal(err)
	}
	allowed := 0
	for range 1000 {
		decision, err := limiter.Take(context.Background(), mete.Request{
			Charges: []mete.Charge{{Key: "user 7", Limit: limit, Cost: 1}},
		})
		if err != nil {
			log.Fatal(err)
		}
		if decision.Allowed {
			allowed++
		}
	}
	fmt.Println(allowed, "were allowed,", limiter.Stats().DeniedFromMemory, "were denied without asking the store")
	// Output: 3 were allowed, 996 were denied without asking the store
}
