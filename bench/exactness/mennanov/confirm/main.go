// SPDX-License-Identifier: Apache-2.0

// Command confirm repeats findings about mennanov/limiters with as little code as possible.
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/mennanov/limiters"
)

// skewed is a clock that differs from the true time.
type skewed struct{ by time.Duration }

func (s skewed) Now() time.Time { return time.Now().Add(s.by) }

// main lets two processes share a state. The clock of the second is 30 s ahead. Then a clock steps back.
func main() {
	state := limiters.NewTokenBucketInMemory()
	node := func(by time.Duration) *limiters.TokenBucket {
		return limiters.NewTokenBucket(10, 100*time.Millisecond, limiters.NewLockNoop(), state, skewed{by}, limiters.NewStdLogger())
	}
	admitted := 0
	for _, n := range []*limiters.TokenBucket{node(0), node(30 * time.Second)} {
		for range 15 {
			if _, err := n.Limit(context.Background()); err == nil {
				admitted++
			}
		}
	}
	fmt.Printf("two clocks, 30 s apart: %d of 30 admitted at once, with a capacity of 10\n", admitted)

	behind := node(0)
	wait, err := behind.Limit(context.Background())
	fmt.Printf("30 s behind the last take: %v, wait %s\n", err, wait.Round(time.Millisecond))
	time.Sleep(wait)
	_, err = behind.Limit(context.Background())
	fmt.Printf("after the wait: %v\n", err)
}
