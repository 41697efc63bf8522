// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/didip/tollbooth/v8"
)

// tollboothChange raises the limit of a limiter that knows the key. The key's bucket keeps its rate.
func tollboothChange(context.Context, string) error {
	l := tollbooth.NewLimiter(10.0/60, nil).SetBurst(10)
	for range 10 {
		l.LimitReached("old")
	}
	l.SetMax(10).SetBurst(10)
	time.Sleep(2 * time.Second) // 20 tokens at the new rate
	for range 10 {
		l.LimitReached("new")
	}
	time.Sleep(500 * time.Millisecond)
	fmt.Printf("2.5 s after 10 per second: limited=%t for a known key, %t for a new one\n", l.LimitReached("old"), l.LimitReached("new"))
	return nil
}
