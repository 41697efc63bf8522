// SPDX-License-Identifier: Apache-2.0

package recipes_test

import (
	"fmt"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/keyed"
)

// Once per 30 seconds is a bucket of one token. A fixed window would admit two requests around its end.
func Example_cooldown() {
	c := newClock()
	cooldown := must(keyed.New(limit(bucket.Spec{
		Capacity: 1 * bucket.Token,
		Rate:     rate("1/30s"),
	}), keyed.Config{Now: c.Now}))

	for _, pass := range []time.Duration{0, 29 * time.Second, time.Second, time.Second} {
		c.Pass(pass)
		take := cooldown.Take("alice: resend the mail", 1)
		fmt.Println(c.now.Time().Format(time.TimeOnly), take.Allowed, take.RetryAfter)
	}
	// Output:
	// 12:00:00 true 0s
	// 12:00:29 false 1s
	// 12:00:30 true 0s
	// 12:00:31 false 29s
}
