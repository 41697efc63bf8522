// SPDX-License-Identifier: Apache-2.0

package recipes_test

import (
	"context"
	"fmt"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
)

// A table allows 10 reads per second, and clients can catch up on unused reads of the last five minutes. A burst can be
// a duration of the rate: 10/s × 300 s = 3000. In Go code, use bucket.Rate.TokensIn.
const burstCredit = `
{"name": "reads", "limit_keys": ["table"], "rps": 10, "burst": "300s"}`

func Example_burstCredit() {
	c := newClock()
	matcher := must(policy.Load([]byte(burstCredit), policy.Options{}))
	store := must(memstore.New(memstore.Config{Now: c.Now}))
	limiter := must(mete.New(store, matcher, mete.Config{}))

	read := func() int {
		reads := 0
		for must(limiter.Take(context.Background(), mete.Request{Attributes: mete.Attrs{"table": "orders"}})).Allowed {
			reads++
		}
		return reads
	}
	fmt.Println("after a quiet night:", read())
	for _, pass := range []time.Duration{time.Second, time.Minute, time.Hour} {
		c.Pass(pass)
		fmt.Printf("after %v more: %d\n", pass, read())
	}
	// Output:
	// after a quiet night: 3000
	// after 1s more: 10
	// after 1m0s more: 600
	// after 1h0m0s more: 3000
}
