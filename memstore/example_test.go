// SPDX-License-Identifier: Apache-2.0

package memstore_test

import (
	"fmt"
	"log"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
)

// A program that limits by a key without a policy calls the store itself.
func ExampleStore_TakeOne() {
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		log.Fatal(err)
	}
	limit, err := bucket.NewLimit(2*bucket.Token, bucket.Rate{Tokens: bucket.Token, Per: time.Hour})
	if err != nil {
		log.Fatal(err)
	}
	for range 3 {
		verdict, _ := store.TakeOne("alice", &limit, bucket.Token)
		fmt.Println(verdict.Allowed(), verdict.RetryAfter().Round(time.Minute))
	}
	// Output:
	// true 0s
	// true 0s
	// false 1h0m0s
}
