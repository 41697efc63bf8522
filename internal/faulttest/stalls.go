// SPDX-License-Identifier: Apache-2.0

package faulttest

import (
	"context"
	"time"
)

// A stall is when the machine had no time for this process: it does other things,
// too, and whoever waited then did not wait for a store.
type stall struct{ from, to time.Time }

// watch returns the stalls until ctx is done.
func watch(ctx context.Context) (stalls []stall) {
	const beat = 5 * time.Millisecond
	ticker := time.NewTimer(beat)
	defer ticker.Stop()
	for {
		due := time.Now().Add(beat)
		ticker.Reset(beat)
		select {
		case <-ctx.Done():
			return stalls
		case <-ticker.C:
		}
		if now := time.Now(); now.Sub(due) > beat {
			stalls = append(stalls, stall{due, now})
		}
	}
}

// stalled is how much of the time from began to ended were stalls.
func stalled(stalls []stall, began, ended time.Time) (sum time.Duration) {
	for _, s := range stalls {
		if s.from.Before(began) {
			s.from = began
		}
		if s.to.After(ended) {
			s.to = ended
		}
		sum += max(s.to.Sub(s.from), 0)
	}
	return sum
}
