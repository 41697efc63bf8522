// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"

	"github.com/metehq/mete/bucket"
)

// A SlotLister is a [Store] that lists the held slots of a key, for admins. It is safe for concurrent use.
type SlotLister interface {
	// Slots returns the unexpired slots of a key in the order of their ends, at most most of them, and the store's time.
	Slots(ctx context.Context, key string, most int) ([]bucket.Slot, bucket.Instant, error)
}

// HasSlots reports whether one of the charges is for a slot.
func HasSlots(charges []Charge) bool {
	for i := range charges {
		if charges[i].Limit.Algorithm() == bucket.AlgorithmConcurrency {
			return true
		}
	}
	return false
}
