// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/proctest"
)

// TestMarkers_AreDeleted has one slot deny takes that another admits. The markers of the refunds are deleted.
func TestMarkers_AreDeleted(t *testing.T) {
	t.Parallel()
	a := startAttempts(t)
	last := a.store.splitCharges(a.charges, bySlot)[1].charges[0].Key
	for i := range a.charges {
		if c := &a.charges[i]; c.Key == last {
			c.Cost = c.Limit.Capacity() + 1
		}
	}
	for range 300 {
		if _, allowed, err := a.store.Take(t.Context(), nil, a.charges, mete.Mode{}); err != nil || allowed {
			t.Fatalf("take of more than there can be: allowed %v, %v", allowed, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := proctest.Poll(ctx, func(ctx context.Context) error {
		for addr, node := range a.store.client.Nodes() {
			if n, err := node.Do(ctx, node.B().Dbsize().Build()).AsInt64(); err != nil || n > 0 {
				return fmt.Errorf("%s has %d keys, %v", addr, n, err)
			}
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}
