// SPDX-License-Identifier: Apache-2.0

package recipes_test

import (
	"context"
	"fmt"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
)

// All clients together may create 100 accounts per hour, and one address 2. Both limits are charged or neither, so a
// denied address does not use up the common limit.
func Example_accountCreation() {
	store := must(memstore.New(memstore.Config{Now: newClock().Now}))
	limiter := must(mete.New(store, nil, mete.Config{}))
	everybody := must(bucket.NewLimit(100*bucket.Token, rate("100/1h")))
	address := must(bucket.NewLimit(2*bucket.Token, rate("2/1h")))

	signUp := func(ip string) bool {
		d := must(limiter.Take(context.Background(), mete.Request{Charges: []mete.Charge{
			{Key: "sign-up", Limit: everybody, Cost: 1},
			{Key: "sign-up from " + ip, Limit: address, Cost: 1},
		}}))
		return d.Allowed
	}

	opened := 0
	for range 1000 {
		if signUp("192.0.2.1") {
			opened++
		}
	}
	fmt.Println("one address, 1000 times:", opened)

	opened = 0
	for i := range 99 {
		if signUp(fmt.Sprintf("198.51.100.%d", i)) {
			opened++
		}
	}
	fmt.Println("99 others, once:", opened)
	// Output:
	// one address, 1000 times: 2
	// 99 others, once: 98
}
