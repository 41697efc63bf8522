// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/redisstore"
	"github.com/metehq/mete/store"
	"github.com/redis/rueidis"
)

// sharing returns stores that share their buckets, like nodes.
func sharing(t testing.TB, client rueidis.Client, n int) []*redisstore.Store {
	t.Helper()
	prefix := fmt.Sprintf("nodes%d:", stores.Add(1))
	nodes := make([]*redisstore.Store, n)
	for i := range nodes {
		s, err := redisstore.New(client, redisstore.Config{Prefix: prefix, Timeout: awhile})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		nodes[i] = s
	}
	return nodes
}

func perSecond(t testing.TB, capacity, rate bucket.Tokens) bucket.Limit {
	t.Helper()
	l, err := bucket.NewLimit(capacity*bucket.Token, bucket.Rate{Tokens: rate * bucket.Token, Per: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestLeases_KeepTheBound takes from one bucket on three nodes at full speed. They stay within the limit, with
// hardly any calls.
func TestLeases_KeepTheBound(t *testing.T) {
	client := connect(t, proctest.StartRedis(t).Addr)
	nodes, l := sharing(t, client, 3), perSecond(t, 2000, 50_000)
	charges := []store.Charge{{Key: "hot", Limit: l, Cost: bucket.Token, Leased: true}}
	var admitted, asked, byOne atomic.Int64
	// The reference is one bucket in memory with the same takes, because a slow machine sends fewer.
	var mu sync.Mutex
	var one bucket.State
	began := time.Now()
	var all sync.WaitGroup
	for i := range 12 {
		node := nodes[i%len(nodes)]
		all.Go(func() {
			for time.Since(began) < 1500*time.Millisecond {
				mu.Lock()
				if l.SpendOn(&one, bucket.At(time.Now()), bucket.Token, 0).Allowed() {
					byOne.Add(1)
				}
				mu.Unlock()
				_, allowed, err := node.Take(t.Context(), nil, charges, mete.Mode{})
				if err != nil {
					t.Error(err)
					return
				}
				asked.Add(1)
				if allowed {
					admitted.Add(1)
				}
			}
		})
	}
	all.Wait()
	took := time.Since(began)
	calls := int64(0)
	for _, n := range nodes {
		calls += n.Stats().Asks
		if got := n.Stats().Leases; got.Granted == 0 || got.Efficiency() < 0.5 {
			t.Errorf("leases were of no use: %+v", got)
		}
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}
	most := 2000 + 50_000*took.Seconds()
	if got := float64(admitted.Load()); got > most || got < 0.5*float64(byOne.Load()) {
		t.Errorf("admitted %v in %v: the limit allows %.0f, and one bucket would have admitted %d", got, took, most, byOne.Load())
	}
	t.Logf("%d of %d admitted, of %.0f; %d asked Redis", admitted.Load(), asked.Load(), most, calls)
}

// TestLeases_WithOtherLimits charges a leased bucket and one that denies: the leased tokens are returned.
func TestLeases_WithOtherLimits(t *testing.T) {
	client := connect(t, proctest.StartRedis(t).Addr)
	node := sharing(t, client, 1)[0]
	shared, own := perSecond(t, 1_000_000, 1), perSecond(t, 10, 1)
	admitted, began := 0, time.Now()
	for i := range 4000 {
		charges := []store.Charge{
			{Key: "shared", Limit: shared, Cost: bucket.Token, Leased: true},
			{Key: fmt.Sprint("user", rand.IntN(20)), Limit: own, Cost: bucket.Token},
		}
		snaps, allowed, err := node.Take(t.Context(), nil, charges, mete.Mode{})
		if err != nil || len(snaps) != 2 || snaps[0].Limit != shared || snaps[1].Limit != own || allowed != (snaps[0].Allowed && snaps[1].Allowed) {
			t.Fatalf("take %d: %v, allowed %v, %v", i, err, allowed, snaps)
		}
		if allowed {
			admitted++
		}
	}
	if got := node.Stats().Leases; got.Spent == 0 {
		t.Errorf("nothing was leased: %+v", got)
	}
	if err := node.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := client.Do(t.Context(), client.B().Arbitrary("KEYS", "*shared*").Build()).AsStrSlice()
	if err != nil || len(text) != 1 {
		t.Fatalf("keys %v, %v; want the bucket and no lease", text, err)
	}
	value, err := client.Do(t.Context(), client.B().Get().Key(text[0]).Build()).ToString()
	if err != nil {
		t.Fatal(err)
	}
	state := readState(t, value)
	missing := float64(state.Spent) / float64(state.Unit) / float64(bucket.Token)
	if refilled := 1 + time.Since(began).Seconds(); missing > float64(admitted) || missing < float64(admitted)-refilled {
		t.Errorf("%v are missing after %d were admitted", missing, admitted)
	}
}
