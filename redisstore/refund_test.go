// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/faulttest"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/redisstore"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// twoNodes returns a key in the first slots of a cluster, and one in the last.
func twoNodes(c *proctest.Cluster) (a, b string) {
	for i := 0; a == "" || b == ""; i++ {
		key := fmt.Sprint("k", i)
		switch owner := c.Owner(c.SlotOf("tb:" + key)); {
		case owner == c.Nodes[0] && a == "":
			a = key
		case owner == c.Nodes[2] && b == "":
			b = key
		}
	}
	return a, b
}

// missingOf returns the spent tokens of a bucket.
func missingOf(t *testing.T, s mete.Store, key string) bucket.Tokens {
	t.Helper()
	var snaps []bucket.Snapshot
	faulttest.Eventually(t, "the bucket can be seen", func() (err error) {
		snaps, _, err = s.Take(t.Context(), nil, []store.Charge{{Key: key, Limit: slowLimit}}, mete.Mode{DryRun: true})
		return err
	})
	missing := snaps[0].Limit.Capacity() - snaps[0].Remaining() + bucket.Token/2 // the limit hardly refills
	return missing - missing%bucket.Token
}

// takeBoth spends 50 tokens of two buckets, then 10 of both, and returns the latter as refunds.
func takeBoth(t *testing.T, s mete.Store, a, b string) []mete.Refund {
	t.Helper()
	charges := slowCharges(a, b)
	for _, cost := range []bucket.Tokens{50 * bucket.Token, 10 * bucket.Token} {
		charges[0].Cost, charges[1].Cost = cost, cost
		snaps, allowed, err := s.Take(t.Context(), nil, charges, mete.Mode{})
		if err != nil || !allowed {
			t.Fatalf("allowed %v, %v", allowed, err)
		}
		if cost == 10*bucket.Token {
			return []mete.Refund{{Charge: charges[0], Taken: snaps[0].Taken()}, {Charge: charges[1], Taken: snaps[1].Taken()}}
		}
	}
	return nil
}

// TestRefund_OfSlotsWithoutANodeIsGivenOnce cancels a reservation of two slots repeatedly while one node is down:
// the other refunds once.
func TestRefund_OfSlotsWithoutANodeIsGivenOnce(t *testing.T) {
	faulttest.RunParallel(t)
	c := proctest.StartCluster(t, 3, 0)
	s, _ := dialURL(t, "redis+cluster://"+c.Addrs[0]+","+c.Addrs[1], redisstore.Config{})
	a, b := twoNodes(c)
	takeBoth(t, s, a, b)
	limiter, err := mete.New(s, nil, mete.Config{OnStoreError: policy.OnStoreErrorClosed})
	if err != nil {
		t.Fatal(err)
	}
	var charges []mete.Charge
	for _, c := range slowCharges(a, b) {
		charges = append(charges, mete.Charge{Key: c.Key, Limit: c.Limit, Cost: 10})
	}
	r, err := limiter.Reserve(t.Context(), mete.Request{Charges: charges})
	if err != nil || !r.Allowed {
		t.Fatalf("%+v, %v", r, err)
	}
	c.Nodes[2].Kill()
	faulttest.Eventually(t, "the store finds that the node is gone", func() error {
		_, _, err := s.Take(t.Context(), nil, slowCharges(b), mete.Mode{})
		if err == nil || mete.Spent(err) != mete.NotSpent {
			return fmt.Errorf("%v: want an error that says not spent", err)
		}
		return nil
	})
	if err := r.Cancel(t.Context()); err == nil || mete.Spent(err) != mete.MaybeSpent {
		t.Errorf("the first: %v, want an error that says maybe spent", err)
	}
	for range 3 {
		_ = r.Cancel(t.Context())
		if got := missingOf(t, s, a); got != 60*bucket.Token {
			t.Errorf("%v are missing, want 60", got)
		}
	}
}

// TestReset_OfSlotsWithoutANode resets two slots while one node is down: the error is MaybeSpent.
func TestReset_OfSlotsWithoutANode(t *testing.T) {
	faulttest.RunParallel(t)
	c := proctest.StartCluster(t, 3, 0)
	s, _ := dialURL(t, "redis+cluster://"+c.Addrs[0]+","+c.Addrs[1], redisstore.Config{})
	a, b := twoNodes(c)
	takeBoth(t, s, a, b)
	c.Nodes[2].Kill()
	faulttest.Eventually(t, "the store finds that the node is gone", func() error {
		if err := s.Reset(t.Context(), []string{b}); err == nil || mete.Spent(err) != mete.NotSpent {
			return fmt.Errorf("%v: want an error that says not spent", err)
		}
		return nil
	})
	if err := s.Reset(t.Context(), []string{a, b}); err == nil || mete.Spent(err) != mete.MaybeSpent {
		t.Errorf("%v, want an error that says maybe spent", err)
	}
	if got := missingOf(t, s, a); got != 0 {
		t.Errorf("%v are missing after a reset", got)
	}
}

// TestRefund_OfSlotsIsCompleted refunds two slots while one answers late. The refund is completed in the
// background, once, even if it is repeated under its ID.
func TestRefund_OfSlotsIsCompleted(t *testing.T) {
	faulttest.RunParallel(t)
	c := proctest.StartCluster(t, 3, 0)
	s, _ := dialURL(t, "redis+cluster://"+c.Addrs[0], redisstore.Config{Timeout: 300 * time.Millisecond})
	patient, _ := dialURL(t, "redis+cluster://"+c.Addrs[0], redisstore.Config{}) // for calls that must be answered
	a, b := twoNodes(c)
	want := 60 * bucket.Token
	for _, id := range []string{"", "x", "y"} {
		for _, canceled := range []bool{true, false} {
			var refunds []mete.Refund
			faulttest.Eventually(t, "the buckets are there", func() error { // despite the outage
				_, _, err := s.Take(t.Context(), nil, slowCharges(b), mete.Mode{DryRun: true})
				return err
			})
			if err := patient.Reset(t.Context(), []string{a, b}); err != nil {
				t.Fatal(err)
			}
			if refunds = takeBoth(t, patient, a, b); !canceled { // an admin refund
				refunds[0].Taken, refunds[1].Taken = bucket.Taken{}, bucket.Taken{}
				if id != "" {
					id += " of an administrator"
				}
			}
			c.Nodes[2].Pause()
			for range 1 + min(len(id), 2) {
				if err := s.Refund(t.Context(), refunds, id); mete.Spent(err) != mete.MaybeSpent || err == nil {
					t.Errorf("ID %q: %v, want an error that says maybe spent", id, err)
				}
			}
			c.Nodes[2].Resume()
			undone(t, s)
			if id != "" {
				faulttest.Eventually(t, "it is answered", func() error { return s.Refund(t.Context(), refunds, id) })
			}
			for _, key := range []string{a, b} {
				if got := missingOf(t, patient, key); got != want-10*bucket.Token {
					t.Errorf("ID %q, canceled %v: %v are missing of %s, want 50", id, canceled, got, key)
				}
			}
		}
	}
}

// TestRefund_OfACostAboveTheCapacity cancels a cost above the capacity after more than a capacity has refilled.
// The bucket is full, and never more than full.
func TestRefund_OfACostAboveTheCapacity(t *testing.T) {
	clock := storetest.NewClock()
	client := connect(t, proctest.StartRedis(t).Addr)
	s, model := open(t, client, redisstore.Config{Now: clock.Now}), storetest.NewModel(clock.Now)
	l, err := bucket.NewLimit(10*bucket.Token, bucket.PerSecond(bucket.Token))
	if err != nil {
		t.Fatal(err)
	}
	c := []store.Charge{{Key: "k", Limit: l, Cost: 100 * bucket.Token}}
	for _, shared := range []mete.Store{s, model} {
		clock.Set(1_700_000_000_000_000)
		snaps, allowed, err := shared.Take(t.Context(), nil, c, mete.Mode{MaxWait: bucket.Forced})
		if err != nil || !allowed {
			t.Fatalf("allowed %v, %v", allowed, err)
		}
		clock.Advance(20e6)
		if err := shared.Refund(t.Context(), []mete.Refund{{Charge: c[0], Taken: snaps[0].Taken()}}, ""); err != nil {
			t.Fatal(err)
		}
		full := []store.Charge{{Key: "k", Limit: l, Cost: l.Capacity()}}
		for _, want := range []bool{true, false} {
			if _, allowed, err := shared.Take(t.Context(), nil, full, mete.Mode{}); err != nil || allowed != want {
				t.Errorf("%T: the capacity was taken: %v, %v; want %v", shared, allowed, err, want)
			}
		}
	}
}
