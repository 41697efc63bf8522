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
	// firstBackoff is the minimum wait before the second attempt. It doubles with each subsequent attempt.
	firstBackoff = 50 * time.Millisecond

	// maxJitter bounds the jitter of a wait, which is otherwise up to half of the wait.
	maxJitter = 5 * time.Second
)

// retryDelay returns the wait that a server requests in a RetryInfo, and whether there is a valid one. The
// longest of several RetryInfos counts.
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

func (c *ClientInterceptor) shouldRetry(ctx context.Context, err error, attempt int) (time.Duration, bool) {
	wait, told := retryDelay(err)
	if !told || attempt >= c.config.MaxAttempts {
		return 0, false
	}
	wait = c.delay(wait, attempt)
	return wait, wait <= c.config.MaxDelay && outlasts(ctx, wait) && c.budget.spend()
}

// delay returns the wait before the next attempt: at least the backoff, plus jitter, at most MaxDelay.
func (c *ClientInterceptor) delay(wait time.Duration, attempt int) time.Duration {
	wait = max(wait, firstBackoff<<(attempt-1))
	jitter := min(wait/2, maxJitter, c.config.MaxDelay-wait)
	if jitter <= 0 {
		return wait
	}
	return wait + rand.N(jitter)
}

// A budget bounds retries, as in gRFC A6. The zero budget is full. It counts spent tenths of a retry.
type budget struct{ missing atomic.Int64 }

const (
	fullBudget   = 100 // ten retries
	retryCost    = 10
	successWorth = 1
)

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

func (b *budget) earn() {
	for {
		missing := b.missing.Load()
		if missing <= 0 || b.missing.CompareAndSwap(missing, max(missing-successWorth, 0)) {
			return
		}
	}
}
