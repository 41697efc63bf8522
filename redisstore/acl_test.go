// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"os"
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/redisstore"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
	"github.com/redis/rueidis"
)

// aclRule returns the ACL rule in doc/redis.md for a server on a single Redis.
func aclRule(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../doc/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "ACL SETUSER mete ")
	if !found {
		t.Fatal("doc/redis.md has no ACL SETUSER mete")
	}
	rest, _, _ = strings.Cut(rest, "\n\n")
	return strings.Fields(strings.NewReplacer("\\\n", " ", "'", "").Replace(rest))
}

// TestACL proves that the documented user can do everything that a store does, and no more.
func TestACL(t *testing.T) {
	r := proctest.StartRedis(t)
	rule := aclRule(t)
	if _, err := r.Do(append([]string{"ACL", "SETUSER", "mete"}, rule...)...); err != nil {
		t.Fatal(err)
	}
	n := openURL(t, "redis://mete:PASSWORD@"+r.Addr+"?prefix=mete:")
	spend(t, n, "rule:k")
	if _, err := n.DeriveKey(t.Context(), "test"); err != nil {
		t.Error(err)
	}
	options, _, err := redisstore.ParseURL("redis://mete:PASSWORD@" + r.Addr)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rueidis.NewClient(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	restricted := func(t *testing.T, now func() bucket.Instant) mete.Store {
		s, err := redisstore.New(client, redisstore.Config{Prefix: "mete:" + t.Name(), Now: now, Timeout: awhile})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	storetest.RunBriefly(t, restricted)
	storetest.RunHoldsBriefly(t, restricted)
	storetest.RunDocuments(t, func(t *testing.T) func() store.Documents {
		return func() store.Documents { return openAt(t, client, "mete:"+t.Name()) }
	})
	for _, command := range [][]string{{"KEYS", "*"}, {"GET", "other"}, {"FLUSHALL"}, {"CONFIG", "GET", "*"}, {"SCAN", "0"}} {
		err := client.Do(t.Context(), client.B().Arbitrary(command...).Build()).Error()
		if err == nil || !strings.Contains(err.Error(), "NOPERM") {
			t.Errorf("%q: %v, want NOPERM", command, err)
		}
	}
	if denied, err := r.Do("ACL", "LOG"); err != nil || strings.Contains(denied, "script") || strings.Contains(denied, "setinfo") {
		t.Errorf("ACL LOG: %q, %v; want nothing that the store does", denied, err)
	}
}

// TestACL_SentinelAndCluster proves the documented additions for Sentinel and Cluster.
// document, too.
func TestACL_SentinelAndCluster(t *testing.T) {
	t.Parallel()
	rule := aclRule(t)
	setUser := func(r *proctest.Redis, more ...string) {
		t.Helper()
		if _, err := r.Do(append(append([]string{"ACL", "SETUSER", "mete"}, rule...), more...)...); err != nil {
			t.Fatal(err)
		}
	}
	s := proctest.StartSentinel(t)
	setUser(s.Master(), "+role")
	spend(t, openURL(t, "redis+sentinel://mete:PASSWORD@"+strings.Join(s.Addrs, ",")+"/"+s.MasterName+"?prefix=mete:"), "rule:k")

	c := proctest.StartCluster(t, 2, 0)
	for _, node := range c.Nodes {
		setUser(node, "+cluster|slots", "+cluster|shards", "+asking")
	}
	n := openURL(t, "redis+cluster://mete:PASSWORD@"+c.Addrs[0]+"?prefix=mete:")
	slot := c.SlotOf("mete:tb:rule:k")
	to := c.Nodes[0]
	if c.Owner(slot) == to {
		to = c.Nodes[1]
	}
	c.MigrateSlot(slot, to, func(step proctest.SlotStep) {
		if step == proctest.SlotEmptied {
			spend(t, n, "rule:k") // by ASKING
		}
	})
	spend(t, n, "rule:l")
}
