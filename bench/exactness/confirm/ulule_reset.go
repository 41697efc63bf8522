// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/store/memory"
)

// ululeReset waits until the instant in Reset. It has whole seconds, rounded down, so it can be up to a second early.
func ululeReset(ctx context.Context, _ string) error {
	l := limiter.New(memory.NewStore(), limiter.Rate{Period: time.Second, Limit: 1})
	// The next window starts in the middle of a second.
	time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(1500 * time.Millisecond)))
	for range 2 {
		state, err := l.Get(ctx, "k")
		if err != nil {
			return err
		}
		reset := time.Unix(state.Reset, 0)
		fmt.Printf("%s denied=%t reset=%s\n", time.Now().Format("05.000"), state.Reached, reset.Format("05.000"))
		time.Sleep(time.Until(reset))
	}
	state, err := l.Get(ctx, "k")
	fmt.Printf("%s denied=%t\n", time.Now().Format("05.000"), state.Reached)
	return err
}
