// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/lease"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
	"github.com/redis/rueidis"
)

// newLeasingStore returns a store that leases from a bucket of ten tokens that refills one per second.
func newLeasingStore(t *testing.T, config Config) (s *Store, charge func(bucket.Tokens) []store.Charge, borrow func(bucket.Tokens, time.Duration) lease.Grant) {
	t.Helper()
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{proctest.StartRedis(t).Addr}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	config.Timeout = 30 * time.Second
	if s, err = New(client, config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	l, err := bucket.NewLimit(10*bucket.Token, bucket.PerSecond(bucket.Token))
	if err != nil {
		t.Fatal(err)
	}
	charge = func(cost bucket.Tokens) []store.Charge {
		return []store.Charge{{Key: "k", Limit: l, Cost: cost, Leased: true}}
	}
	seq := uint64(0)
	borrow = func(want bucket.Tokens, ttl time.Duration) lease.Grant {
		t.Helper()
		seq++
		g, err := lender{s}.Borrow(t.Context(), lease.Loan{Key: "k", Limit: l, Holder: "h", Seq: seq, Want: want, TTL: ttl})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	return s, charge, borrow
}

func TestLending_OfABucketInDebt(t *testing.T) {
	clock := storetest.NewClock()
	s, charge, _ := newLeasingStore(t, Config{Now: clock.Now})
	stepped, _, err := bucket.Spec{Algorithm: bucket.AlgorithmStepped, Capacity: 10 * bucket.Token, Rate: bucket.PerSecond(bucket.Token)}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	for key, l := range map[string]bucket.Limit{"continuous": charge(0)[0].Limit, "stepped": stepped} {
		owing := []store.Charge{{Key: key, Limit: l, Cost: 15 * bucket.Token, Leased: true}}
		if _, allowed, err := s.Take(t.Context(), nil, owing, mete.Mode{MaxWait: bucket.Forced}); err != nil || !allowed {
			t.Fatalf("%s: allowed %v, %v", key, allowed, err)
		}
		loan := lease.Loan{Key: key, Limit: l, Holder: "h", Seq: 1, Want: 5 * bucket.Token, TTL: time.Minute}
		if g, err := (lender{s}).Borrow(t.Context(), loan); err != nil || g.Tokens != 0 {
			t.Errorf("%s: a bucket that owes lent %v, %v", key, g.Tokens, err)
		}
	}
}

// TestLending_WaitIsExact waits for leases to end (G3).
func TestLending_WaitIsExact(t *testing.T) {
	clock := storetest.NewClock()
	s, charge, borrow := newLeasingStore(t, Config{Now: clock.Now})
	if g := borrow(4*bucket.Token, time.Minute); g.Tokens != 4*bucket.Token {
		t.Fatalf("lent %v", g.Tokens)
	}
	began := clock.Now()
	for cost, want := range map[bucket.Tokens]time.Duration{8 * bucket.Token: 62 * time.Second, 6001: time.Minute + time.Millisecond} {
		clock.Set(began)
		snaps, allowed, err := s.Take(t.Context(), nil, charge(cost), mete.Mode{})
		if err != nil || allowed || snaps[0].RetryAfter != want {
			t.Fatalf("taking %v: allowed %v, retry after %v, %v; want denied, %v", cost, allowed, snaps[0].RetryAfter, err, want)
		}
		clock.Set(began.Add(want - time.Microsecond))
		if _, allowed, err := s.Take(t.Context(), nil, charge(cost), mete.Mode{DryRun: true}); err != nil || allowed {
			t.Errorf("taking %v a microsecond early: allowed %v, %v", cost, allowed, err)
		}
		clock.Set(began.Add(want))
		if _, allowed, err := s.Take(t.Context(), nil, charge(cost), mete.Mode{DryRun: true}); err != nil || !allowed {
			t.Errorf("taking %v after the wait: allowed %v, %v", cost, allowed, err)
		}
	}
	clock.Set(began.Add(time.Minute - time.Microsecond)) // the lease's last instant
	if snaps, _, _ := s.Take(t.Context(), nil, charge(0), mete.Mode{DryRun: true}); snaps[0].Remaining() != 6*bucket.Token {
		t.Errorf("%v remain while 4 are lent, want 6", snaps[0].Remaining())
	}
}

// TestLending_IsNotForgotten proves how long leases and the spending after them are remembered.
func TestLending_IsNotForgotten(t *testing.T) {
	s, charge, borrow := newLeasingStore(t, Config{})
	began := time.Now()
	borrow(4*bucket.Token, time.Minute)
	lives := func(least time.Duration) {
		t.Helper()
		for _, key := range []string{"tb:k", s.leaseKey("k")} {
			ms, err := s.client.Do(t.Context(), s.client.B().Pttl().Key(key).Build()).AsInt64()
			if got := time.Duration(ms) * time.Millisecond; err != nil || got < least-time.Second-time.Since(began) || got > least+4*time.Second {
				t.Errorf("key %q lives for another %v, %v; want %v", key, got, err, least)
			}
		}
	}
	lives(64 * time.Second)
	if _, allowed, err := s.Take(t.Context(), nil, charge(bucket.Token), mete.Mode{MaxWait: bucket.Forced}); err != nil || !allowed {
		t.Fatalf("allowed %v, %v", allowed, err)
	}
	lives(64 * time.Second)
	if err := s.Refund(t.Context(), storetest.Refunds(charge(bucket.Token)...), ""); err != nil {
		t.Fatal(err)
	}
	lives(64 * time.Second)
}
