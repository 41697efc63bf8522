// SPDX-License-Identifier: Apache-2.0

package grpclimit

import (
	"context"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

// reserve decides by limiter and the method limits together. A call may be held
// back for maxWait, and never beyond its deadline.
func reserve(ctx context.Context, limiter *mete.Limiter, methods *methodTable, attrs policy.Attributes, maxWait time.Duration) (*mete.Reservation, error) {
	charges, entries, missing := methods.charges(attrs)
	if missing != nil {
		return &mete.Reservation{Decision: missingAttribute(missing)}, nil
	}
	r, err := limiter.Reserve(ctx, mete.Request{Attributes: attrs, Charges: charges, MaxWait: within(ctx, maxWait)})
	if err != nil {
		return nil, err
	}
	name(&r.Decision, entries)
	return r, nil
}

// within shortens a wait to what is left until ctx's deadline.
func within(ctx context.Context, wait time.Duration) time.Duration {
	if deadline, ok := ctx.Deadline(); ok && wait > 0 {
		return max(min(wait, time.Until(deadline)), 0)
	}
	return wait
}

// missingAttribute is the decision on a call that lacks what a key is made of.
func missingAttribute(r *policy.Rule) mete.Decision {
	return mete.Decision{Rule: r.Name, Reason: mete.ReasonMissingAttribute, RetryAfter: bucket.Never}
}
