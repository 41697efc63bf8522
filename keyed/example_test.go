// SPDX-License-Identifier: Apache-2.0

package keyed_test

import (
	"fmt"
	"time"

	"github.com/metehq/mete/keyed"
)

func Example() {
	uploads := keyed.Must("1/1h", 2)
	for range 3 {
		fmt.Println(uploads.Allow("alice"))
	}
	fmt.Println(uploads.Allow("bob"))
	// Output:
	// true
	// true
	// false
	// true
}

// The snapshot contains the information for the client.
func ExampleLimiter_Take() {
	downloads := keyed.Must("1/1m", 100)
	for range 2 {
		if take := downloads.Take("alice", 70); take.Allowed {
			fmt.Println("go ahead,", take.Remaining().Whole(), "left")
		} else {
			fmt.Println("come back in", take.RetryAfter.Round(time.Minute))
		}
	}
	// Output:
	// go ahead, 30 left
	// come back in 40m0s
}

// TakeUpTo sends a part of a batch.
func ExampleLimiter_TakeUpTo() {
	letters := keyed.Must("1/1m", 100)
	letters.Take("alice", 60)
	take := letters.TakeUpTo("alice", 70)
	fmt.Println("sent", take.Cost, "of 70")
	// Output:
	// sent 40 of 70
}
