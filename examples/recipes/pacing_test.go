// SPDX-License-Identifier: Apache-2.0

package recipes_test

import (
	"fmt"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/keyed"
)

// Sixty per hour, but never two at once: a capacity of one spreads calls evenly. For schedulers, a reservation returns
// the start of each call without sleeping. Wait sleeps until the start.
func Example_pacing() {
	c := newClock()
	partner := must(keyed.New(limit(bucket.Spec{
		Capacity: 1 * bucket.Token,
		Rate:     rate("60/1h"),
	}), keyed.Config{Now: c.Now}))

	for _, pass := range []time.Duration{0, 0, 0, 30 * time.Second} {
		c.Pass(pass)
		r := must(partner.Reserve("partner.example", 1, time.Hour))
		fmt.Println("call in", r.Wait)
	}
	c.Pass(time.Hour)
	fmt.Println("at once after an hour of silence:", partner.TakeUpTo("partner.example", 60).Cost)
	// Output:
	// call in 0s
	// call in 1m0s
	// call in 2m0s
	// call in 2m30s
	// at once after an hour of silence: 1
}
