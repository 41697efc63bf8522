// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/internal/testkit"
	"github.com/metehq/mete/store"
)

// TestForgetFamilies_EndsLeases proves that a node returns the leases of a cleared family. Until the bucket is
// cleared again, only tokens that the node has spent from its lease are missing.
func TestForgetFamilies_EndsLeases(t *testing.T) {
	t.Parallel()
	client := connect(t, proctest.StartRedis(t).Addr)
	nodes, l := sharing(t, client, 2), perSecond(t, 1_000_000, 1)
	charges := []store.Charge{{Key: "hot:x=1", Limit: l, Cost: bucket.Token, Leased: true}}
	node, other := nodes[0], nodes[1]
	testkit.Until(t, "the node leases the bucket", func() bool {
		for range 100 {
			if _, _, err := node.Take(t.Context(), nil, charges, mete.Mode{}); err != nil {
				t.Fatal(err)
			}
		}
		return node.Stats().Leases.Granted > 0
	})
	clearAll := func() {
		t.Helper()
		for from, more := "", true; more; more = from != "" {
			_, next, err := other.ClearFamilies(t.Context(), []string{"hot:"}, from)
			if err != nil {
				t.Fatal(err)
			}
			from = next
		}
	}
	missing := func() bucket.Tokens {
		t.Helper()
		snaps, _, err := other.Take(t.Context(), nil, []store.Charge{{Key: "hot:x=1", Limit: l}}, mete.Mode{DryRun: true, Fresh: true})
		if err != nil {
			t.Fatal(err)
		}
		return snaps[0].Missing()
	}
	clearAll()
	node.DropFamilies([]string{"cold:"})
	if got := node.Stats().Leases.Buckets; got != 1 {
		t.Errorf("%d leases after another family was cleared, want 1", got)
	}
	node.DropFamilies([]string{"hot:"})
	testkit.Until(t, "the lease is returned", func() bool { return node.Stats().Leases.Buckets == 0 })
	leased := node.Stats().Leases
	if got := missing(); float64(got)/float64(bucket.Token) > leased.Spent {
		t.Errorf("the bucket misses %v after the lease has ended, and %v of it were spent", got, leased.Spent)
	}
	if clearAll(); missing() != 0 {
		t.Errorf("the bucket misses %v after a second clear", missing())
	}
}
