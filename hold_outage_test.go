// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// During an outage, on_store_error decides a hold. Its local cost is final, and its ID changes nothing.
func TestHold_Outage(t *testing.T) {
	for mode, allowed := range map[string]bool{"open": true, "closed": false, "local": true} {
		for _, f := range []fault{down, silent} {
			c := start(t, 1, strings.Replace(localRule, `"local"`, `"`+mode+`"`, 1))
			n := c.nodes[0]
			n.line.cut(f)
			h, err := n.Hold(t.Context(), mete.Request{Cost: 4}, mete.HoldOptions{})
			if err != nil || h.Allowed != allowed || !h.Degraded || (h.ID != "") != allowed || !h.Expires.IsZero() {
				t.Fatalf("%s: %+v, error %v", mode, h, err)
			}
			if mode == "local" {
				if again, err := n.Hold(t.Context(), mete.Request{Cost: 7}, mete.HoldOptions{}); err != nil || again.Allowed {
					t.Errorf("the local bucket allowed 7 of 6 tokens: %+v, error %v", again, err)
				}
			}
			if !allowed {
				continue
			}
			n.line.cut(up)
			for range 2 {
				if status, err := n.Settle(t.Context(), h.ID, 1); err != nil || status.Settled {
					t.Errorf("%s: settle: %+v, error %v", mode, status, err)
				}
			}
			if left := n.drain(); mode == "local" && left != 6 {
				t.Errorf("%d of 10 tokens are left, want 6: the local cost is final", left)
			}
		}
	}
}

// A program may repeat a settlement after a lost answer, also in another process. The store applies it once.
func TestHold_LostAnswers(t *testing.T) {
	c := start(t, 2, `{"name": "all", "limit_keys": [], "algorithm_config": {"rate": "1/1000h", "burst": 100}}`)
	n, other := c.nodes[0], c.nodes[1]
	req := mete.Request{Cost: 40, ID: "job 7"}
	n.line.cut(lossy)
	if h, err := n.Hold(t.Context(), req, mete.HoldOptions{}); err != nil || !h.Degraded {
		t.Fatalf("%+v, error %v; want a degraded decision", h, err)
	}
	n.line.cut(up)
	h, err := n.Hold(t.Context(), req, mete.HoldOptions{})
	if err != nil || h.Expires.IsZero() {
		t.Fatalf("%+v, error %v; want the hold of the first attempt", h, err)
	}
	if got, err := n.Peek(t.Context(), mete.Request{}); err != nil || got.Limits()[0].Remaining() != 60*whole {
		t.Fatalf("%v left, error %v; want 60: a repeated hold is charged once", got.Limits()[0].Remaining(), err)
	}
	n.line.cut(lossy)
	for range 3 {
		if _, err := n.Settle(t.Context(), h.ID, 15); mete.Spent(err) != mete.MaybeSpent || err == nil {
			t.Fatalf("error %v, want a lost answer", err)
		}
	}
	n.line.cut(down)
	if _, err := n.Settle(t.Context(), h.ID, 15); mete.Spent(err) != mete.NotSpent {
		t.Fatalf("error %v, want NotSpent", err)
	}
	for _, at := range []*node{other, other} {
		if status, err := at.Settle(t.Context(), h.ID, 15); err != nil || status.Settled || status.Actual != 15*whole {
			t.Errorf("%+v, error %v; want the first settlement", status, err)
		}
	}
	if got, err := other.Peek(t.Context(), mete.Request{}); err != nil || got.Limits()[0].Remaining() != 85*whole {
		t.Errorf("%v left, error %v; want 85", got.Limits()[0].Remaining(), err)
	}
}

// Several limiters hold, settle, release and repeat by ID. In the end the bucket lacks exactly the settled amounts.
func TestHold_Conservation(t *testing.T) {
	clock := storetest.NewClock()
	s, err := memstore.New(memstore.Config{Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	const workers = 4
	rounds := 400
	if testing.Short() {
		rounds = 100
	}
	var limiters []*mete.Limiter
	for range workers {
		l, err := mete.New(s, load(t, `{"rules": [
			{"name": "requests", "limit_keys": [], "algorithm_config": {"rate": "1/100h", "burst": 20000}},
			{"name": "tokens", "limit_keys": ["header:x-user"], "group": "t", "algorithm_config": {"rate": "1/1000h", "burst": 2000}}]}`), mete.Config{})
		if err != nil {
			t.Fatal(err)
		}
		limiters = append(limiters, l)
	}
	var spent [2]atomic.Int64
	var denied atomic.Int64
	ids := make(chan string, workers*rounds)
	ends := func(r *rand.Rand, held mete.Tokens, id string) {
		actual := mete.Tokens(r.IntN(int(held) + 1))
		var won atomic.Int64
		var all sync.WaitGroup
		for _, l := range limiters { // all at once, with different amounts
			mine := actual
			if r.IntN(2) == 0 {
				mine = 0
			}
			all.Go(func() {
				status, err := l.Settle(t.Context(), id, mine)
				if err != nil || status.State != store.HoldSettled {
					t.Errorf("settle: %+v, error %v", status, err)
				}
				if status.Settled {
					won.Add(1)
					spent[0].Add(int64(status.Actual))
					spent[1].Add(int64(status.Actual))
				}
			})
		}
		if all.Wait(); won.Load() != 1 {
			t.Errorf("%d settlements counted, want 1", won.Load())
		}
		ids <- id
	}
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			r := rand.New(testseed.PCG(uint64(w), 77))
			for range rounds {
				cost := mete.Tokens(1 + r.IntN(40))
				h, err := limiters[r.IntN(workers)].Hold(t.Context(), mete.Request{Attributes: alice, Cost: cost}, mete.HoldOptions{TTL: time.Hour})
				switch {
				case err != nil:
					t.Error(err)
					return
				case !h.Allowed:
					denied.Add(1)
				case r.IntN(20) == 0: // never ends
					spent[0].Add(int64(cost) * int64(whole))
					spent[1].Add(int64(cost) * int64(whole))
				default:
					ends(r, cost, h.ID)
				}
			}
		})
	}
	all.Wait()
	close(ids)
	for id := range ids {
		if status, err := limiters[0].Release(t.Context(), id); err != nil || status.Settled {
			t.Fatalf("release after a settlement: %+v, error %v", status, err)
		}
	}
	d, err := limiters[0].Peek(t.Context(), mete.Request{Attributes: alice})
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range d.Limits() {
		if got := s.Missing(); got != bucket.Tokens(spent[i].Load()) {
			t.Errorf("bucket %d lacks %v, want the settled %v; %d holds denied", i, got, bucket.Tokens(spent[i].Load()), denied.Load())
		}
	}
	if denied.Load() == 0 && !testing.Short() {
		t.Error("no hold was denied: the run means little")
	}
}
