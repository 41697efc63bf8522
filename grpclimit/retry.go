// SPDX-License-Identifier: Apache-2.0

package grpclimit

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// firstBackoff is the shortest wait before the second attempt; it doubles
	// with each further one. Servers that say 0 are not hammered.
	firstBackoff = 50 * time.Millisecond

	// longestJitter bounds what is added to a wait, which is otherwise up to a
	// half of it.
	longestJitter = 5 * time.Second
)

// retryDelay returns how long a server says to wait, and whether it says that the
// call may be repeated at all. Of several RetryInfos the longest counts. Those
// that make no sense are as if they were not there.
func retryDelay(err error) (wait time.Duration, told bool) {
	s, ok := status.FromError(err)
	if !ok || s.Code() != codes.ResourceExhausted {
		return 0, false
	}
	for _, detail := range s.Details() {
		info, ok := detail.(*errdetails.RetryInfo)
		if !ok || info.GetRetryDelay() == nil || info.RetryDelay.CheckValid() != nil {
			continue
		}
		if d := info.RetryDelay.AsDuration(); d >= 0 {
			wait, told = max(wait, d), true // AsDuration stays within 292 years
		}
	}
	return wait, told
}

// again decides whether a call that failed is sent again, and after how long.
func (c *ClientInterceptor) again(ctx context.Context, err error, attempt int) (time.Duration, bool) {
	wait, told := retryDelay(err)
	if !told || attempt >= c.config.MaxAttempts {
		return 0, false
	}
	wait = c.delay(wait, attempt)
	return wait, wait <= c.config.MaxDelay && lives(ctx, wait) && c.budget.spend()
}

// delay is how long to wait before the attempt after this one: no less than a
// backoff, and by chance somewhat more, but not so much more as to exceed
// MaxDelay.
func (c *ClientInterceptor) delay(wait time.Duration, attempt int) time.Duration {
	wait = max(wait, firstBackoff<<(attempt-1))
	jitter := min(wait/2, longestJitter, c.config.MaxDelay-wait)
	if jitter <= 0 {
		return wait
	}
	return wait + rand.N(jitter)
}

// A budget bounds retries: gRFC A6. The zero budget is full. It counts what is
// missing from it, in tenths of a retry.
type budget struct{ missing atomic.Int64 }

const (
	fullBudget   = 100 // ten retries
	retryCost    = 10
	successWorth = 1
)

// spend takes a retry, and reports whether there was one.
func (b *budget) spend() bool {
	for {
		missing := b.missing.Load()
		if missing+retryCost > fullBudget {
			return false
		}
		if b.missing.CompareAndSwap(missing, missing+retryCost) {
			return true
		}
	}
}

// earn adds what a success is worth.
func (b *budget) earn() {
	for {
		missing := b.missing.Load()
		if missing <= 0 || b.missing.CompareAndSwap(missing, max(missing-successWorth, 0)) {
			return
		}
	}
}
