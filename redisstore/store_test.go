// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"cmp"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/internal/usagetest"
	"github.com/metehq/mete/redisstore"
	"github.com/metehq/mete/storetest"
	"github.com/redis/rueidis"
)

// awhile is the timeout for expected events, even on a slow machine.
const awhile = time.Minute

// stores counts the stores on one server, each with its own keys.
var stores atomic.Int64

func connect(t testing.TB, addr ...string) rueidis.Client {
	t.Helper()
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: addr, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func open(t testing.TB, client rueidis.Client, config redisstore.Config) *redisstore.Store {
	t.Helper()
	config.Prefix += fmt.Sprintf("test%d:", stores.Add(1))
	config.Timeout = cmp.Or(config.Timeout, awhile)
	s, err := redisstore.New(client, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestStore_OnOneServer(t *testing.T) {
	t.Parallel()
	client := connect(t, proctest.StartRedis(t).Addr)
	storetest.Run(t, func(t *testing.T, now func() bucket.Instant) mete.Store {
		return open(t, client, redisstore.Config{Now: now, Timeout: awhile})
	})
}

func TestStore_BehindSentinel(t *testing.T) {
	t.Parallel()
	sentinel := proctest.StartSentinel(t)
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: sentinel.Addrs, DisableCache: true,
		Sentinel: rueidis.SentinelOption{MasterSet: sentinel.MasterName},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	storetest.RunBriefly(t, func(t *testing.T, now func() bucket.Instant) mete.Store {
		return open(t, client, redisstore.Config{Now: now, Timeout: awhile})
	})
}

func TestStore_InACluster(t *testing.T) {
	t.Parallel()
	client := connect(t, proctest.StartCluster(t, 3, 0).Addrs...)
	for _, in := range []struct {
		name, prefix string
		run          func(*testing.T, storetest.Open)
	}{
		{"in one slot", "{tag}", storetest.RunBriefly},
		{"in many slots", "", storetest.RunInParts},
	} {
		t.Run(in.name, func(t *testing.T) {
			in.run(t, func(t *testing.T, now func() bucket.Instant) mete.Store {
				return open(t, client, redisstore.Config{Now: now, Prefix: in.prefix, Timeout: awhile})
			})
		})
	}
}

func TestStore_Families(t *testing.T) {
	t.Parallel()
	standalone := connect(t, proctest.StartRedis(t).Addr)
	sentinel := proctest.StartSentinel(t)
	behind, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: sentinel.Addrs, DisableCache: true, Sentinel: rueidis.SentinelOption{MasterSet: sentinel.MasterName},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(behind.Close)
	cluster := connect(t, proctest.StartCluster(t, 3, 0).Addrs...)
	for _, in := range []struct {
		name, prefix string
		client       rueidis.Client
	}{
		{"standalone", "", standalone},
		{"with a prefix of pattern characters", `a*[b]\?:`, standalone},
		{"behind Sentinel", "", behind},
		{"cluster, one slot", "{tag}", cluster},
		{"cluster, many slots", "", cluster},
	} {
		t.Run(in.name, func(t *testing.T) {
			storetest.RunFamilies(t, func(t *testing.T, now func() bucket.Instant) mete.Store {
				return open(t, in.client, redisstore.Config{Now: now, Prefix: in.prefix + t.Name(), Timeout: awhile})
			})
		})
	}
}

func TestHolds(t *testing.T) {
	t.Parallel()
	standalone := connect(t, proctest.StartRedis(t).Addr)
	cluster := connect(t, proctest.StartCluster(t, 3, 0).Addrs...)
	for _, in := range []struct {
		name, prefix string
		client       rueidis.Client
		run          func(*testing.T, storetest.Open)
	}{
		{"standalone", "", standalone, storetest.RunHolds},
		{"cluster, one slot", "{tag}", cluster, storetest.RunHolds},
		{"cluster, many slots", "", cluster, storetest.RunHoldsInParts},
	} {
		t.Run(in.name, func(t *testing.T) {
			open := func(t *testing.T, now func() bucket.Instant) mete.Store {
				return open(t, in.client, redisstore.Config{Now: now, Prefix: in.prefix, Timeout: awhile})
			}
			in.run(t, open)
			t.Run("by usage", func(t *testing.T) { usagetest.Run(t, open) })
		})
	}
}
