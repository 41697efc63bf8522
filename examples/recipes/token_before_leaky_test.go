// SPDX-License-Identifier: Apache-2.0

package recipes_test

import (
	"context"
	"fmt"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
)

// Clients may send bursts, but the backend takes one request every 100 ms. The token bucket denies clients that exceed
// their limit. The leaky bucket has a queue of 4 and returns the start of each request. If the queue is full, the token
// bucket is not charged either.
func Example_tokenBucketBeforeLeakyBucket() {
	c := newClock()
	store := must(memstore.New(memstore.Config{Now: c.Now}))
	limiter := must(mete.New(store, nil, mete.Config{}))
	client := limit(bucket.Spec{Capacity: 3 * bucket.Token, Rate: rate("1/1s")})
	downstream := limit(bucket.Spec{Capacity: 1 * bucket.Token, Rate: rate("10/1s"), Queue: 4 * bucket.Token})

	for _, name := range []string{"a", "a", "a", "a", "b", "b", "b"} {
		d := must(limiter.Take(context.Background(), mete.Request{Charges: []mete.Charge{
			{Key: "client " + name, Limit: client, Cost: 1},
			{Key: "downstream", Limit: downstream, Cost: 1},
		}}))
		if d.Allowed {
			fmt.Printf("%s: start in %v\n", name, d.Wait)
		} else {
			fmt.Printf("%s: denied, retry after %v\n", name, d.RetryAfter)
		}
	}
	// Output:
	// a: start in 0s
	// a: start in 100ms
	// a: start in 200ms
	// a: denied, retry after 1s
	// b: start in 300ms
	// b: start in 400ms
	// b: denied, retry after 100ms
}
