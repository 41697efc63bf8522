// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/time/rate"
)

// xTimeClock alternates between two clocks, one second apart, as two sources of events do. Each backward step moves the
// limiter's last instant back, and the next forward step refills the same second again. Allow uses time.Now, which has
// a monotonic clock in one process, and is not affected.
func xTimeClock(context.Context, string) error {
	l := rate.NewLimiter(10, 10)
	start := time.Now()
	admitted := 0
	for i := range 1000 {
		if l.AllowN(start.Add(time.Duration(i%2)*time.Second), 1) {
			admitted++
		}
	}
	fmt.Printf("1000 events at two instants, one second apart: %d admitted, the bound is 20\n", admitted)
	return nil
}
