// SPDX-License-Identifier: Apache-2.0

package httplimit

import (
	"fmt"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
)

// A DeniedError is the error of a [ModelTransport] for a request that was not sent. It wraps [mete.ErrDeadlineTooSoon] if the
// request would have to wait too long, and [mete.ErrRefused] if waiting does not help.
type DeniedError struct {
	Decision mete.Decision

	// RetryAfter is the time until a request without a wait is admitted. It is [bucket.Never] if waiting does not help.
	RetryAfter time.Duration

	// Provider is set if the provider has announced the wait, and no rule of the policy.
	Provider bool
}

func (e *DeniedError) Error() string {
	why := fmt.Sprintf("rule %q denies the request: %s", e.Decision.Rule, e.Decision.Reason)
	switch {
	case e.Provider:
		why = "the provider accepts no requests"
	case e.Decision.Rule == "":
		why = "the request is denied: " + e.Decision.Reason
	}
	if e.RetryAfter == bucket.Never {
		return why + ": waiting does not help"
	}
	return fmt.Sprintf("%s: retry after %v", why, e.RetryAfter)
}

func (e *DeniedError) Unwrap() error {
	if e.RetryAfter == bucket.Never {
		return mete.ErrRefused
	}
	return mete.ErrDeadlineTooSoon
}

// newDeniedError returns the error of a decision. pause is the key of the provider's pause.
func newDeniedError(d *mete.Decision, pause string) *DeniedError {
	e := &DeniedError{Decision: *d, RetryAfter: d.RetryAfter}
	limits := d.Limits()
	for i := range limits {
		if s := &limits[i]; !s.Allowed {
			e.RetryAfter = max(e.RetryAfter, waitWithoutLoan(s))
		}
	}
	if decider := d.Decider(); decider != nil {
		e.Provider = decider.Key == pause
	}
	return e
}

// slotPoll is how often a waiting request looks for a free slot of a concurrency limit.
const slotPoll = 100 * time.Millisecond

// modelWait returns how long a denied request needs to wait at least, and the time until its next attempt.
func modelWait(d *mete.Decision) (need, next time.Duration) {
	limits := d.Limits()
	if len(limits) == 0 {
		return d.RetryAfter, d.RetryAfter
	}
	next = time.Millisecond
	for i := range limits {
		switch s := &limits[i]; {
		case s.Allowed:
		case s.Snapshot.Limit.Algorithm() == bucket.AlgorithmConcurrency && s.RetryAfter != bucket.Never:
			next = max(next, min(s.RetryAfter, slotPoll))
		default:
			need, next = max(need, waitWithoutLoan(s)), max(next, s.RetryAfter)
		}
	}
	return max(need, next), next
}

// waitWithoutLoan returns the time until a limit admits the cost of s without a wait. RetryAfter is the time until it admits
// the cost with the wait of the request.
func waitWithoutLoan(s *mete.Status) time.Duration {
	switch s.Snapshot.Limit.Algorithm() {
	case bucket.AlgorithmContinuous, bucket.AlgorithmStepped:
		return max(s.RetryAfter, s.RefillAfter(s.Cost))
	}
	return s.RetryAfter
}
