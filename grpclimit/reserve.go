// SPDX-License-Identifier: Apache-2.0

package grpclimit

import (
	"context"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

// reserve takes from limiter and the method limits together. A call waits up to maxWait, but not beyond its
// deadline.
func reserve(ctx context.Context, limiter *mete.Limiter, methods *methodTable, attrs policy.Attributes, maxWait time.Duration, slot bucket.SlotID) (*mete.Reservation, error) {
	charges, entries, missing := methods.charges(attrs)
	if missing != nil {
		return &mete.Reservation{Decision: missingAttribute(missing)}, nil
	}
	r, err := limiter.Reserve(ctx, mete.Request{Attributes: attrs, Charges: charges, MaxWait: capWait(ctx, maxWait), Slot: slot})
	if err != nil {
		return nil, err
	}
	setNames(&r.Decision, entries)
	return r, nil
}

func capWait(ctx context.Context, wait time.Duration) time.Duration {
	if deadline, ok := ctx.Deadline(); ok && wait > 0 {
		return max(min(wait, time.Until(deadline)), 0)
	}
	return wait
}

func missingAttribute(r *policy.Rule) mete.Decision {
	return mete.Decision{Rule: r.Name, Reason: mete.ReasonMissingAttribute, RetryAfter: bucket.Never}
}
