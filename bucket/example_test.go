// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"fmt"
	"log"
	"time"

	"github.com/metehq/mete/bucket"
)

func Example() {
	// A burst of two, refilled at one per half second.
	limit, err := bucket.NewLimit(2*bucket.Token, bucket.PerSecond(2*bucket.Token))
	if err != nil {
		log.Fatal(err)
	}
	now := bucket.At(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	var state bucket.State // full
	for range 3 {
		var snap bucket.Snapshot
		state, snap = limit.Take(state, now, bucket.Token)
		fmt.Println(snap.Allowed, snap.Remaining(), snap.RetryAfter)
	}
	// Output:
	// true 1 0s
	// true 0 0s
	// false 0 500ms
}

func ExampleLimit_Take_never() {
	limit, _ := bucket.NewLimit(10*bucket.Token, bucket.PerSecond(bucket.Token))
	_, snap := limit.Take(bucket.State{}, 0, 11*bucket.Token)
	fmt.Println(snap.Allowed, snap.RetryAfter == bucket.Never)
	// Output: false true
}

func ExampleLimit_Reserve() {
	limit, _ := bucket.NewLimit(3*bucket.Token, bucket.PerSecond(bucket.Token))
	// Three tokens are available and five are requested. The work may start when two more have refilled, without
	// another check.
	_, snap := limit.Reserve(bucket.State{}, 0, 5*bucket.Token, 10*time.Second)
	fmt.Println(snap.Allowed, snap.Wait())
	// Output: true 2s
}

func ExampleLimit_Refund() {
	limit, _ := bucket.NewLimit(10*bucket.Token, bucket.PerSecond(bucket.Token))
	state, _ := limit.Take(bucket.State{}, 0, 8*bucket.Token) // estimated
	state = limit.Refund(state, 0, 5*bucket.Token)            // used: 3
	fmt.Println(limit.Peek(state, 0, 0, 0).Remaining())
	// Output: 7
}

func ExampleTakeAll() {
	user, _ := bucket.NewLimit(10*bucket.Token, bucket.PerSecond(bucket.Token))
	global, _ := bucket.NewLimit(bucket.Token, bucket.Rate{Tokens: bucket.Token, Per: time.Minute})
	charges := []bucket.Charge{{Limit: user, Cost: bucket.Token}, {Limit: global, Cost: bucket.Token}}
	states := make([]bucket.State, 2)
	for range 2 {
		snaps, allowed := bucket.TakeAll(nil, states, charges, 0, 0)
		fmt.Println(allowed, snaps[0].Remaining(), snaps[1].Remaining(), snaps[1].RetryAfter)
	}
	// Output:
	// true 9 0 0s
	// false 9 0 1m0s
}

func ExampleSpec_Compile_approximation() {
	rate, _ := bucket.ParsePerSecond("1000000.001")
	_, report, err := bucket.Spec{Capacity: 9_000_000_000 * bucket.Token, Rate: rate}.Compile()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("asked %v, used %d thousandths every %dµs\n", report.Asked, int64(report.Tokens), report.Micros)
	// Output: asked 1000000.001/1s, used 1000 thousandths every 1µs
}

func ExampleParseRate() {
	for _, s := range []string{"7/1m", "0.5/10s", "100/s", "100"} {
		rate, err := bucket.ParseRate(s)
		fmt.Println(rate, err == nil)
	}
	// Output:
	// 7/1m0s true
	// 0.5/10s true
	// 100/1s true
	// 0/0s false
}
