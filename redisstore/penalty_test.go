// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/redisstore"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

func TestStore_Penalties(t *testing.T) {
	t.Parallel()
	standalone := connect(t, proctest.StartRedis(t).Addr)
	cluster := connect(t, proctest.StartCluster(t, 3, 0).Addrs...)
	for _, in := range []struct {
		name string
		run  func(*testing.T, storetest.Open)
		redisstore.Config
	}{
		{"standalone", storetest.RunPenalties, redisstore.Config{}},
		{"cluster, one slot", storetest.RunPenalties, redisstore.Config{Prefix: "{tag}"}},
		{"cluster, many slots", storetest.RunPenaltiesInParts, redisstore.Config{}},
	} {
		t.Run(in.name, func(t *testing.T) {
			client := standalone
			if in.name != "standalone" {
				client = cluster
			}
			in.run(t, func(t *testing.T, now func() bucket.Instant) mete.Store {
				return open(t, client, redisstore.Config{Now: now, Prefix: in.Prefix, Timeout: awhile})
			})
		})
	}
}

// A penalty lives in Redis until it expires, and denials during it write nothing.
func TestPenalty_Expiry(t *testing.T) {
	t.Parallel()
	client := connect(t, proctest.StartRedis(t).Addr)
	s := open(t, client, redisstore.Config{Prefix: "expiry:"})
	l, err := bucket.NewLimit(bucket.Token, bucket.Rate{Tokens: bucket.Token, Per: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	p, err := bucket.NewPenalty(100*time.Second, 1000*time.Second, 2*bucket.Token)
	if err != nil {
		t.Fatal(err)
	}
	charges := []store.Charge{{Key: "k", Limit: l, Cost: bucket.Token, Penalty: p}}
	take := func() bool {
		_, allowed, err := s.Take(t.Context(), nil, charges, mete.Mode{})
		if err != nil {
			t.Fatal(err)
		}
		return allowed
	}
	find := func() string {
		keys, err := client.Do(t.Context(), client.B().Keys().Pattern("*"+store.PenaltyMark).Build()).AsStrSlice()
		if err != nil {
			t.Fatal(err)
		}
		if len(keys) == 0 {
			return ""
		}
		return keys[0]
	}
	if take(); find() != "" {
		t.Fatal("an admitted take wrote a penalty")
	}
	if take() {
		t.Fatal("an empty bucket admitted a token")
	}
	key := find()
	before, err := client.Do(t.Context(), client.B().Get().Key(key).Build()).ToString()
	if err != nil {
		t.Fatal(err)
	}
	left, err := client.Do(t.Context(), client.B().Ttl().Key(key).Build()).AsInt64()
	if err != nil || left < 1000 || left > 1102 {
		t.Errorf("the penalty lives %d s, want about 1101", left)
	}
	for range 20 {
		take()
	}
	if after, _ := client.Do(t.Context(), client.B().Get().Key(key).Build()).ToString(); after != before {
		t.Errorf("denials changed the penalty from %q to %q", before, after)
	}
	if err := s.Reset(t.Context(), []string{"k"}); err != nil || find() != "" {
		t.Errorf("after a reset: %v, key %q", err, find())
	}
}
