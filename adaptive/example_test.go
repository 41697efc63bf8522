// SPDX-License-Identifier: Apache-2.0

package adaptive_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/adaptive"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
)

// A handler in front of a database observes admitted requests, and admits fewer while the database is slow or fails.
func Example() {
	control, err := adaptive.New(adaptive.Config{Target: 200 * time.Millisecond, Floor: 0.2})
	if err != nil {
		log.Fatal(err)
	}
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := mete.New(store, nil, mete.Config{Scale: control.Scale})
	if err != nil {
		log.Fatal(err)
	}
	limit, err := bucket.NewLimit(200*bucket.Token, bucket.PerSecond(100*bucket.Token))
	if err != nil {
		log.Fatal(err)
	}
	request := mete.Request{Charges: []mete.Charge{{Key: "database", Limit: limit, Cost: 1}}}

	query := func(context.Context) error { return nil } // the work
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, err := limiter.Take(r.Context(), request)
		if err != nil || !d.Allowed {
			http.Error(w, "try again later", http.StatusTooManyRequests)
			return // not observed: the database was not involved
		}
		call := control.Begin()
		err = query(r.Context())
		call.Done(err)
		if err != nil {
			http.Error(w, "the database does not answer", http.StatusBadGateway)
		}
	})
	_ = handler
}

func ExampleController_Observe() {
	now := bucket.Instant(1_700_000_000_000_000)
	control, err := adaptive.New(adaptive.Config{Now: func() bucket.Instant { return now }})
	if err != nil {
		log.Fatal(err)
	}
	for range 60 { // three seconds of failures
		now += 50_000
		control.Observe(30*time.Millisecond, errors.New("overloaded"))
	}
	fmt.Printf("%.2f of every limit holds: a token costs %v\n", control.Factor(), control.Scale(bucket.Token))
	// Output: 0.81 of every limit holds: a token costs 1.235
}
