// SPDX-License-Identifier: Apache-2.0

package keyed_test

import (
	"context"
	"fmt"
	"log"

	"github.com/metehq/mete/keyed"
	"github.com/metehq/mete/memstore"
)

// A limiter of redisstore or pgstore returns its Store. Tests can use a memstore.
func ExampleOver() {
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		log.Fatal(err)
	}
	uploads, err := keyed.Over(store, "1/1h", 2)
	if err != nil {
		log.Fatal(err)
	}
	for range 3 {
		allowed, err := uploads.Allow(context.Background(), "alice")
		if err != nil { // the store does not answer: continue the upload
			allowed = true
		}
		fmt.Println(allowed)
	}
	// Output:
	// true
	// true
	// false
}
