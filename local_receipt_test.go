// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/store"
)

func (n *node) reserve(tokens int) *mete.Reservation {
	n.Helper()
	r, err := n.Reserve(n.Context(), mete.Request{Cost: mete.Tokens(tokens)})
	if err != nil || !r.Allowed {
		n.Fatalf("reserve %d: %+v, error %v", tokens, r, err)
	}
	return r
}

// A local reservation is settled and canceled locally during the outage.
func TestReserve_Local(t *testing.T) {
	c := start(t, 1, localRule)
	n := c.nodes[0]
	c.cut(down)
	r := n.reserve(5)
	if err := r.Settle(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	if err := n.reserve(5).Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	more := n.reserve(1)
	if err := more.Settle(t.Context(), 4); err != nil {
		t.Fatal(err)
	}
	if got := n.drain(); got != 4 { // of 10: 2 + 4
		t.Errorf("got %d more, want 4", got)
	}
	c.cut(up)
	if d := n.take(1); d.Allowed {
		t.Error("a second burst")
	}
	if s := n.Stats(); s.SpentLocally != 18*bucket.Token || s.Charged != 10*bucket.Token || s.Refilled != 8*bucket.Token {
		t.Errorf("stats %+v, want 18 spent, of which 8 came back and 10 were charged", s)
	}
}

// A local reservation that was charged to the store is settled there.
func TestReserve_LocalSettledInTheStore(t *testing.T) {
	for _, tc := range []struct {
		actual, want bucket.Tokens
	}{
		{2 * bucket.Token, 3 * bucket.Token},
		{8 * bucket.Token, 9 * bucket.Token},
	} {
		c := start(t, 1, localRule)
		n := c.nodes[0]
		c.cut(down)
		r := n.reserve(5)
		c.cut(up)
		n.take(1)
		c.cut(down)
		if err := r.Settle(t.Context(), mete.TokensOf(tc.actual)); mete.Spent(err) != mete.NotSpent {
			t.Errorf("settle %v while the store is down again: error %v, want one that spent nothing", tc.actual, err)
		}
		c.cut(up)
		if err := r.Settle(t.Context(), mete.TokensOf(tc.actual)); err != nil {
			t.Fatal(err)
		}
		if got := c.missing("all:", tenOne(t)); got != tc.want {
			t.Errorf("settled 5 for %v: the store's bucket misses %v, want %v", tc.actual, got, tc.want)
		}
	}
}

// During an outage, waiters wait for the local bucket.
func TestWait_Local(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		newStore := func() mete.Store {
			s, err := memstore.New(memstore.Config{})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		for _, rule := range []string{localRule, strings.Replace(localRule, `"burst": 10`, `"burst": 10, "max_reserved": 0`, 1)} {
			store := &wire{Store: newStore()}
			l, err := mete.New(store, load(t, rule), mete.Config{Local: newStore(), Nodes: func() int { return 2 }})
			if err != nil {
				t.Fatal(err)
			}
			store.cut(down)
			began := time.Now()
			for i := range 7 { // 5 at once, then one every 2 s
				if d, err := l.Wait(t.Context(), mete.Request{}); err != nil || !d.Degraded {
					t.Fatalf("wait %d: %+v, error %v", i, d, err)
				}
			}
			if took := time.Since(began); took != 4*time.Second {
				t.Errorf("%s: 7 waits took %v, want 4s", rule, took)
			}
			if _, err := l.Wait(t.Context(), mete.Request{MaxWait: time.Second}); !errors.Is(err, mete.ErrDeadlineTooSoon) {
				t.Errorf("%s: wait a second at most: error %v", rule, err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			time.AfterFunc(time.Second, cancel)
			if _, err := l.Wait(ctx, mete.Request{Cost: 2}); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: canceled: error %v", rule, err)
			}
			began = time.Now()
			if _, err := l.Wait(t.Context(), mete.Request{}); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took != time.Second { // half a token had come back
				t.Errorf("%s: waited %v, want 1s: who gives up gives back", rule, took)
			}
		}
	})
}

// A waiter gets the store's answer, even if a local bucket denied before.
func TestWait_StoreIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		newStore := func() mete.Store {
			s, err := memstore.New(memstore.Config{})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		far := &wire{Store: newStore()}
		l, err := mete.New(far, load(t, `{"rules": [
			{"name": "a", "group": "a", "limit_keys": [], "on_store_error": "local", "algorithm_config": {"rps": 1, "burst": 1, "max_reserved": 0}},
			{"name": "b", "group": "b", "limit_keys": [], "on_store_error": "open", "algorithm_config": {"rps": 1, "burst": 2}}]}`),
			mete.Config{Local: newStore()})
		if err != nil {
			t.Fatal(err)
		}
		if d, err := l.Take(t.Context(), mete.Request{}); err != nil || !d.Allowed {
			t.Fatalf("%+v, error %v", d, err)
		}
		far.cut(down)
		done := make(chan struct{})
		go func() {
			defer close(done)
			if d, err := l.Wait(t.Context(), mete.Request{}); err != nil || d.Degraded || d.Wait != time.Second {
				t.Errorf("%+v, error %v; want to wait a second for b", d, err)
			}
		}()
		synctest.Wait() // for a, which is empty here, too
		b := l.Policy().Rules()[1].Limits[0].Bucket
		if _, _, err := far.Store.Take(t.Context(), nil, []store.Charge{{Key: "b:", Limit: b, Cost: 2 * bucket.Token}}, mete.Mode{MaxWait: bucket.Forced}); err != nil {
			t.Fatal(err)
		}
		far.cut(up)
		<-done
	})
}
