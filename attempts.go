// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"context"
	"time"
)

const (
	// maxFinishing bounds the requests that FinishSoon settles at the same time.
	maxFinishing = 4096

	// finishFor bounds how long FinishSoon repeats a failed attempt. The waits between its attempts grow from
	// firstRetry to lastRetry.
	finishFor  = 30 * time.Second
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// An attempt finishes a request, and reports whether another attempt may succeed. last means that there is none.
type attempt func(ctx context.Context, last bool) (again bool, err error)

// finishSoon makes attempts in the background, and waits up to patience for the first. If no attempt succeeds in time,
// it calls giveUp unless it is nil.
func (l *Limiter) finishSoon(ctx context.Context, patience time.Duration, try attempt, giveUp func(context.Context, error)) {
	ctx = context.WithoutCancel(ctx)
	tried := l.finishLater(ctx, try, giveUp)
	if tried == nil {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		_, _ = try(ctx, true)
		return
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-tried:
	case <-timer.C:
	}
}

// finishLater makes attempts in the background, and returns a channel that it closes after the first. It returns nil if too
// many requests are finishing.
func (l *Limiter) finishLater(ctx context.Context, try attempt, giveUp func(context.Context, error)) <-chan struct{} {
	finishing := &l.counts.finishing
	if finishing.Add(1) > maxFinishing {
		finishing.Add(-1)
		return nil
	}
	tried := make(chan struct{})
	go func() {
		defer finishing.Add(-1)
		finishWithRetries(ctx, try, giveUp, tried)
	}()
	return tried
}

// finishWithRetries closes tried after its first attempt.
func finishWithRetries(ctx context.Context, try attempt, giveUp func(context.Context, error), tried chan<- struct{}) {
	ctx, cancel := context.WithTimeout(ctx, finishFor)
	defer cancel()
	again, err := try(ctx, false)
	close(tried)
	for wait := firstRetry; again; wait = min(2*wait, lastRetry) {
		if sleep(ctx, wait) != nil {
			if giveUp != nil {
				giveUp(ctx, err)
			}
			return
		}
		again, err = try(ctx, false)
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return contextError(ctx)
	}
}
