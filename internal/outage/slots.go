// SPDX-License-Identifier: Apache-2.0

package outage

import (
	"context"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// Slots of an outage are in the local store, under the node's share of the limit. They have no accounts, because there is
// nothing to charge afterwards: each slot ends with its request. Until then it is held in addition to the slots of the store.

func isSlot(c *store.Charge) bool { return c.Limit.Algorithm() == bucket.AlgorithmConcurrency }

// TakeSlots takes or renews slots that [Fallback.Take] has taken.
func (f *Fallback) TakeSlots(ctx context.Context, charges []store.Charge, mode store.Mode) (bool, error) {
	mode.Within = 0
	_, allowed, err := f.local.Take(ctx, nil, charges, mode)
	return allowed, err
}

// ReleaseSlots releases slots that [Fallback.Take] has taken.
func (f *Fallback) ReleaseSlots(ctx context.Context, refunds []store.Refund) error {
	return f.local.Refund(ctx, refunds, "")
}
