// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/store"
)

// TestLeases_NotForAwaitedTakes takes from a hot leased bucket, as under a rule with charge_on, and refunds each request.
// Redis remembers what it may return for a take that awaits its settlement, but knows no single take from a lease. So these
// takes do not use leases, and all tokens return.
func TestLeases_NotForAwaitedTakes(t *testing.T) {
	node := sharing(t, connect(t, proctest.StartRedis(t).Addr), 1)[0]
	l := perSecond(t, 10_000, 2000)
	charge := store.Charge{Key: "login", Limit: l, Cost: bucket.Token, Leased: true, Await: time.Minute}
	other := store.Charge{Key: "user", Limit: perSecond(t, 10_000, 1), Cost: bucket.Token}
	for _, charges := range [][]store.Charge{{charge}, {charge, other}} {
		for range 1000 {
			snaps, allowed, err := node.Take(t.Context(), nil, charges, mete.Mode{})
			if err != nil || !allowed {
				t.Fatalf("take: allowed %v, %v", allowed, err)
			}
			if err := node.Refund(t.Context(), []mete.Refund{{Charge: charge, Taken: snaps[0].Taken()}}, ""); err != nil {
				t.Fatal(err)
			}
		}
		snaps, _, err := node.Take(t.Context(), nil, []store.Charge{charge}, mete.Mode{DryRun: true})
		if err != nil {
			t.Fatal(err)
		}
		if got := snaps[0].Remaining(); got != l.Capacity() {
			t.Errorf("%d charges: %v tokens remain after all takes were refunded, want %v", len(charges), got, l.Capacity())
		}
	}
	if got := node.Stats().Leases; got.Granted != 0 {
		t.Errorf("takes that await a settlement were leased: %+v", got)
	}
}
