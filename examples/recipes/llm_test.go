// SPDX-License-Identifier: Apache-2.0

package recipes_test

import (
	"context"
	"fmt"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
)

// A provider allows 60 requests and 1000 tokens per minute. The usage of a call is known only afterwards: reserve an
// estimate and settle the real usage. Usage above the estimate becomes debt, and the next call waits for it.
func Example_languageModel() {
	c, ctx := newClock(), context.Background()
	store := must(memstore.New(memstore.Config{Now: c.Now}))
	limiter := must(mete.New(store, nil, mete.Config{}))
	requests := must(bucket.NewLimit(60*bucket.Token, rate("60/1m")))
	tokens := must(bucket.NewLimit(1000*bucket.Token, rate("1000/1m")))

	call := func(estimate, used int64) {
		r := must(limiter.Reserve(ctx, mete.Request{Charges: []mete.Charge{
			{Key: "model requests", Limit: requests, Cost: 1, Fixed: true}, // not settled
			{Key: "model tokens", Limit: tokens, Cost: mete.TokensOf(bucket.Tokens(estimate) * bucket.Token)},
		}}))
		switch {
		case !r.Allowed:
			fmt.Println("denied, retry after", r.RetryAfter)
			return
		case used == 0: // the call failed: both are given back
			check(r.Cancel(ctx))
		default:
			check(r.Settle(ctx, mete.Tokens(used)))
		}
		d := must(limiter.Peek(ctx, mete.Request{Charges: []mete.Charge{
			{Key: "model requests", Limit: requests}, {Key: "model tokens", Limit: tokens},
		}}))
		fmt.Printf("estimated %v, used %v: %v requests and %v tokens left\n",
			estimate, used, d.Limits()[0].Remaining(), d.Limits()[1].Remaining())
	}
	call(700, 200)
	call(500, 0)
	call(700, 900)
	call(100, 100)
	// Output:
	// estimated 700, used 200: 59 requests and 800 tokens left
	// estimated 500, used 0: 59 requests and 800 tokens left
	// estimated 700, used 900: 58 requests and 0 tokens left
	// denied, retry after 12s
}
