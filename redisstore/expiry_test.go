// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/redisstore"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
	"github.com/redis/rueidis"
)

// kinds are limits of all algorithms: five tokens in ten seconds.
func kinds(t testing.TB) map[string]bucket.Limit {
	t.Helper()
	limits := map[string]bucket.Limit{}
	rate := bucket.Rate{Tokens: 5 * bucket.Token, Per: 10 * time.Second}
	for name, spec := range map[string]bucket.Spec{
		"token bucket":   {Capacity: 5 * bucket.Token},
		"leaky bucket":   {Capacity: bucket.Token, Queue: 4 * bucket.Token},
		"fixed window":   {Algorithm: bucket.AlgorithmStepped, Capacity: 5 * bucket.Token},
		"from the first": {Algorithm: bucket.AlgorithmStepped, Capacity: 5 * bucket.Token, Anchor: bucket.AnchorFirst},
		"sliding window": {Algorithm: bucket.AlgorithmSlidingWindow},
		"sliding log":    {Algorithm: bucket.AlgorithmSlidingLog},
	} {
		spec.Rate = rate
		l, _, err := spec.Compile()
		if err != nil {
			t.Fatal(err)
		}
		limits[name] = l
	}
	return limits
}

// livesFor asserts the time to live of a key, with a small tolerance.
func livesFor(t *testing.T, client rueidis.Client, key string, want time.Duration) {
	t.Helper()
	const moment = 5 * time.Second // the rest of a second, and the duration of the test
	ms, err := client.Do(t.Context(), client.B().Pttl().Key(key).Build()).AsInt64()
	if got := time.Duration(ms) * time.Millisecond; err != nil || got < want-moment+time.Second || got > want+moment {
		t.Errorf("key %q lives for another %v, %v; want %v", key, got, err, want)
	}
}

// TestExpiry_AfterTheClockSteppedBack steps a server's clock back by an hour. The buckets do not refill until
// then, so their keys must live that much longer.
func TestExpiry_AfterTheClockSteppedBack(t *testing.T) {
	client := connect(t, proctest.StartRedis(t).Addr)
	const step = time.Hour
	ahead, err := redisstore.New(client, redisstore.Config{Now: func() bucket.Instant { return bucket.At(time.Now().Add(step)) }})
	if err != nil {
		t.Fatal(err)
	}
	shared, err := redisstore.New(client, redisstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for name, l := range kinds(t) {
		for i, mode := range []mete.Mode{{}, {MaxWait: bucket.Forced}} {
			charges := []store.Charge{{Key: fmt.Sprint(name, i), Limit: l, Cost: bucket.Token}}
			if _, allowed, err := ahead.Take(t.Context(), nil, charges, mode); err != nil || !allowed {
				t.Fatalf("%s: allowed %v, %v", name, allowed, err)
			}
			snaps, allowed, err := shared.Take(t.Context(), nil, charges, mode)
			if err != nil || !allowed {
				t.Errorf("%s: allowed %v, %v", name, allowed, err)
				continue
			}
			if got := snaps[0].FullAfter(); got < step-10*time.Second {
				t.Errorf("%s: full after %v, want it after the %v that the clock stepped back", name, got, step)
			}
			livesFor(t, client, "tb:"+charges[0].Key, snaps[0].FullAfter())
		}
		several := []store.Charge{{Key: name + "0", Limit: l, Cost: 1}, {Key: name + "1", Limit: l, Cost: 1}}
		snaps, _, err := shared.Take(t.Context(), nil, several, mete.Mode{})
		if err != nil {
			t.Error(err)
			continue
		}
		for i, c := range several {
			livesFor(t, client, "tb:"+c.Key, snaps[i].FullAfter())
		}
		if err := shared.Refund(t.Context(), storetest.Refunds(several[:1]...), ""); err != nil {
			t.Error(err)
		}
		livesFor(t, client, "tb:"+several[0].Key, snaps[0].FullAfter())
	}
}

// TestExpiry_OfAnOldWindow has spending in the previous window only, and a window start in the future.
func TestExpiry_OfAnOldWindow(t *testing.T) {
	client := connect(t, proctest.StartRedis(t).Addr)
	s, err := redisstore.New(client, redisstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	const per = 10_000_000
	start := (bucket.At(time.Now().Add(time.Hour)) / per) * per
	state := fmt.Sprintf("1:0+1000@%d w5000+5000/%d", start, per)
	if err := client.Do(t.Context(), client.B().Set().Key("tb:k").Value(state).Build()).Error(); err != nil {
		t.Fatal(err)
	}
	c := store.Charge{Key: "k", Limit: kinds(t)["sliding window"]}
	snaps, allowed, err := s.Take(t.Context(), nil, []store.Charge{c}, mete.Mode{})
	if err != nil || !allowed {
		t.Fatalf("allowed %v, %v", allowed, err)
	}
	livesFor(t, client, "tb:k", snaps[0].FullAfter())
}

// TestExpiry_UnderVirtualTime proves that keys live for an hour of real time.
func TestExpiry_UnderVirtualTime(t *testing.T) {
	client := connect(t, proctest.StartRedis(t).Addr)
	s, err := redisstore.New(client, redisstore.Config{Now: func() bucket.Instant { return 1_000_000_000_000 }})
	if err != nil {
		t.Fatal(err)
	}
	for name, l := range kinds(t) {
		for i, mode := range []mete.Mode{{}, {MaxWait: bucket.Forced}, {ID: "x"}} {
			charges := []store.Charge{{Key: fmt.Sprint(name, i), Limit: l, Cost: 1}, {Key: fmt.Sprint(name, i, "+"), Limit: l, Cost: 1}}
			for _, charges := range [][]store.Charge{charges[:1], charges} {
				if _, allowed, err := s.Take(t.Context(), nil, charges, mode); err != nil || !allowed {
					t.Errorf("%s: allowed %v, %v", name, allowed, err)
				}
				livesFor(t, client, "tb:"+charges[len(charges)-1].Key, time.Hour)
			}
		}
	}
}

// TestExpiry_OfLongDebts reserves more than Redis' longest expiry can express. The keys live for some hundred
// years, and takes with them work.
func TestExpiry_OfLongDebts(t *testing.T) {
	client := connect(t, proctest.StartRedis(t).Addr)
	s := open(t, client, redisstore.Config{})
	for name, spec := range map[string]bucket.Spec{
		"token bucket": {Capacity: bucket.Token, Rate: bucket.Rate{Tokens: 1, Per: time.Microsecond}},
		"fixed window": {Algorithm: bucket.AlgorithmStepped, Capacity: bucket.Token, Rate: bucket.Rate{Tokens: 1, Per: 24 * time.Hour}},
		"slowest":      {Algorithm: bucket.AlgorithmStepped, Capacity: bucket.Token, Rate: bucket.Rate{Tokens: 1, Per: 1<<50*time.Microsecond - time.Microsecond}},
	} {
		l, _, err := spec.Compile()
		if err != nil {
			t.Fatal(err)
		}
		for _, cost := range []bucket.Tokens{l.MaxReserved() / 3, l.MaxReserved() / 3, bucket.Token} {
			charges := []store.Charge{{Key: "a " + name, Limit: l, Cost: cost}, {Key: "b " + name, Limit: kinds(t)["sliding log"]}}
			if _, allowed, err := s.Take(t.Context(), nil, charges, mete.Mode{MaxWait: bucket.Forced}); err != nil || !allowed {
				t.Errorf("%s: owing %v: allowed %v, %v", name, cost, allowed, err)
			}
		}
		if _, allowed, err := s.Take(t.Context(), nil, []store.Charge{{Key: "a " + name, Limit: l}}, mete.Mode{}); err != nil || allowed {
			t.Errorf("%s: taking nothing of a bucket in debt: allowed %v, %v", name, allowed, err)
		}
	}
}

// TestExpiry_OfTwoVersions proves that a row lives until the bucket is full under both limits, whichever was
// charged last.
func TestExpiry_OfTwoVersions(t *testing.T) {
	client := connect(t, proctest.StartRedis(t).Addr)
	s, err := redisstore.New(client, redisstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	slow := perSecond(t, 5, 1)
	for _, spec := range []bucket.Spec{
		{Capacity: 5 * bucket.Token, Rate: bucket.Rate{Tokens: bucket.Token, Per: time.Minute}},
		{Algorithm: bucket.AlgorithmSlidingWindow, Rate: bucket.Rate{Tokens: 5 * bucket.Token, Per: time.Hour}},
		{Algorithm: bucket.AlgorithmSlidingLog, Rate: bucket.Rate{Tokens: 5 * bucket.Token, Per: time.Hour}},
	} {
		lasting := compiled(spec)
		for i, limits := range [][]bucket.Limit{{lasting, slow}, {slow, lasting}} {
			key, want := fmt.Sprint(lasting, i), time.Duration(0)
			for _, l := range limits {
				c := []store.Charge{{Key: key, Limit: l, Cost: 2 * bucket.Token}}
				snaps, allowed, err := s.Take(t.Context(), nil, c, mete.Mode{})
				if err != nil || !allowed {
					t.Fatalf("%s: allowed %v, %v", key, allowed, err)
				}
				want = max(want, snaps[0].FullAfter())
			}
			if i == 0 && lasting.Algorithm() == bucket.AlgorithmContinuous { // charged both costs
				want = lasting.TimeFor(4 * bucket.Token)
			}
			livesFor(t, client, "tb:"+key, want)
		}
	}
}

// TestExpiry_OfRenewedHolds renews a hold whose index and whose refunds are about to expire.
func TestExpiry_OfRenewedHolds(t *testing.T) {
	t.Parallel()
	client := connect(t, proctest.StartRedis(t).Addr)
	s := open(t, client, redisstore.Config{})
	h := store.Hold{ID: "0123456789abcdef", TTL: time.Hour, Refund: true, Terms: make([]store.Terms, 1)}
	_, id, err := s.Hold(t.Context(), nil, []store.Charge{{Key: "k", Limit: kinds(t)["token bucket"], Cost: bucket.Token}}, mete.Mode{}, h)
	if err != nil || id == "" {
		t.Fatalf("id %q, %v", id, err)
	}
	var sets []string
	keys, err := client.Do(t.Context(), client.B().Keys().Pattern("*").Build()).AsStrSlice()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		kind, err := client.Do(t.Context(), client.B().Type().Key(key).Build()).ToString()
		if err != nil {
			t.Fatal(err)
		}
		if kind == "zset" {
			sets = append(sets, key)
		}
	}
	if len(sets) != 2 {
		t.Fatalf("the sorted sets are %q, want the index and the refunds", sets)
	}
	for _, key := range sets {
		livesFor(t, client, key, 8*24*time.Hour)
		if err := client.Do(t.Context(), client.B().Expire().Key(key).Seconds(600).Build()).Error(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Renew(t.Context(), id, time.Hour); err != nil {
		t.Fatal(err)
	}
	for _, key := range sets {
		livesFor(t, client, key, 8*24*time.Hour)
	}
}
