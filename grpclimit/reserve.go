// SPDX-License-Identifier: Apache-2.0

package grpclimit

import (
	"context"
	"slices"
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

// giveBack returns the tokens of an admitted call that does not happen. Where
// that fails its limits refill all the same.
func giveBack(ctx context.Context, r *mete.Reservation) {
	_ = r.Cancel(context.WithoutCancel(ctx))
}

// deny turns an admission into a denial by the limits whose turn comes too late.
// A caller that comes back after the wait starts at once, if it is alone.
func deny(d *mete.Decision) {
	d.Limits = slices.Clone(d.Limits)
	for i := range d.Limits {
		if s := &d.Limits[i]; s.Wait() > 0 {
			s.RetryAfter = s.Wait()
			s.Allowed = false
		}
	}
	d.Allowed, d.Wait, d.RetryAfter = false, 0, d.Wait
	if decider := d.Decider(); decider != nil {
		d.Rule, d.Reason = decider.Rule.Name, decider.Limit.Reason
	}
}

// missingAttribute is the decision on a call that lacks what a key is made of.
func missingAttribute(r *policy.Rule) mete.Decision {
	return mete.Decision{Rule: r.Name, Reason: mete.ReasonMissingAttribute, RetryAfter: bucket.Never}
}
