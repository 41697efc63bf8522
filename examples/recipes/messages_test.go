// SPDX-License-Identifier: Apache-2.0

package recipes_test

import (
	"fmt"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/keyed"
)

// A user may send 10 messages per clock minute. Unused messages roll over, up to 20, because the capacity of the window
// is above its tokens.
func Example_messages() {
	c := newClock()
	messages := must(keyed.New(limit(bucket.Spec{
		Algorithm: bucket.AlgorithmStepped,
		Rate:      rate("10/1m"),
		Capacity:  20 * bucket.Token,
		// Anchor: bucket.AnchorKey would start the minutes of each user at a different second, so that clients do not
		// all retry at once.
	}), keyed.Config{Now: c.Now}))

	send := func(n int) {
		take := messages.Take("alice", n)
		again := fmt.Sprint(", retry after ", take.RetryAfter)
		if take.Allowed {
			again = ""
		} else if take.RetryAfter == bucket.Never {
			again = ", ask for less"
		}
		fmt.Printf("%s  %2d: %-5v  %2d left%s\n",
			c.now.Time().Format(time.TimeOnly), n, take.Allowed, take.Remaining().Whole(), again)
	}
	send(20) // a full bucket
	send(1)
	c.Pass(45 * time.Second)
	send(1)
	c.Pass(15 * time.Second)
	send(4)
	c.Pass(time.Minute)
	send(16) // 6 rolled over
	c.Pass(time.Hour)
	send(21)
	// Output:
	// 12:00:00  20: true    0 left
	// 12:00:00   1: false   0 left, retry after 1m0s
	// 12:00:45   1: false   0 left, retry after 15s
	// 12:01:00   4: true    6 left
	// 12:02:00  16: true    0 left
	// 13:02:00  21: false  20 left, ask for less
}
