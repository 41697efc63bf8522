// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// tenOne is the limit of localRule.
func tenOne(t *testing.T) bucket.Limit { return limit(t, 10, "1/1s") }

func TestRecovery_NoSecondBurst(t *testing.T) {
	c := start(t, 2, localRule)
	c.cut(down)
	for _, n := range c.nodes {
		n.drain()
	}
	c.cut(up)
	if d := c.nodes[0].take(6); d.Allowed || d.Degraded { // 5 are charged
		t.Errorf("6 of 10 after a node spent 5: %+v", d)
	}
	if d := c.nodes[0].take(5); !d.Allowed || d.Degraded {
		t.Errorf("5 of 10 after a node spent 5: %+v", d)
	}
	if d := c.nodes[1].take(1); d.Allowed || d.RetryAfter != 6*time.Second { // it charges 5 more than there are
		t.Errorf("1 of 10 after 15: allowed %v, retry after %v; want 6s", d.Allowed, d.RetryAfter)
	}
	for i, n := range c.nodes {
		if got, want := n.Stats(), (mete.Stats{Local: 6, SpentLocally: 5000, Charged: 5000}); got != want {
			t.Errorf("node %d: stats %+v, want %+v", i, got, want)
		}
	}
}

// Refilled tokens are not charged: an outage of an hour does not reduce the next hour.
func TestRecovery_WhatCameBackIsNotCharged(t *testing.T) {
	c := start(t, 1, localRule)
	n := c.nodes[0]
	c.cut(down)
	spent := 0
	for range 3600 {
		c.advance(1)
		spent += n.drain()
	}
	c.cut(up)
	n.take(1)
	s := n.Stats()
	if spent != 3609 || s.Charged != 10_000 || s.Refilled != 3_599_000 || s.Excess != 0 || s.Unsettled != 0 {
		t.Errorf("%d were spent: stats %+v, want 10 charged and 3599 refilled", spent, s)
	}
	if got := c.missing("all:", tenOne(t)); got != 10*bucket.Token {
		t.Errorf("the store's bucket misses %v, want 10", got)
	}
}

// The initial deficit of a local bucket is not charged.
func TestRecovery_WhatWasMissingIsNotCharged(t *testing.T) {
	c := start(t, 1, localRule)
	n := c.nodes[0]
	n.take(6)
	c.cut(down)
	c.advance(1)
	if got := n.drain(); got != 5 {
		t.Errorf("got %d, want the 4 that were left and 1 that came back", got)
	}
	c.cut(up)
	c.advance(2)
	if d := n.take(2); !d.Allowed {
		t.Errorf("the 2 that came back: %+v", d)
	}
	if got, s := c.missing("all:", tenOne(t)), n.Stats(); got != 10*bucket.Token || s.Charged != 5*bucket.Token {
		t.Errorf("the store's bucket misses %v, stats %+v; want 10, 5 of them charged", got, s)
	}
}

// A charge with a lost answer is repeated under its ID, and charged once.
func TestRecovery_LostAnswer(t *testing.T) {
	c := start(t, 1, localRule)
	n := c.nodes[0]
	c.cut(down)
	n.take(4)
	c.cut(lossy)
	for range 3 {
		if d := n.take(1); !d.Allowed || d.Failure != store.FailureTimeout {
			t.Fatalf("while answers are lost: %+v", d)
		}
	}
	if got := c.missing("all:", tenOne(t)); got != 4*bucket.Token {
		t.Errorf("the store's bucket misses %v, want 4: neither the same again nor takes that come after it", got)
	}
	c.cut(up)
	if d := n.take(3); !d.Allowed || d.Degraded {
		t.Errorf("3 of 10 after 7: %+v", d)
	}
	if got, s := c.missing("all:", tenOne(t)), n.Stats(); got != 10*bucket.Token || s.Charged != 7000 || s.Unsettled != 0 {
		t.Errorf("the store's bucket misses %v, stats %+v; want 10, 7 of them charged", got, s)
	}
}

// After the store may have dropped the ID, the cost is charged again rather than never.
func TestRecovery_LostAnswerForLong(t *testing.T) {
	c := start(t, 1, strings.Replace(localRule, `"rps": 1`, `"rate": "1/1h"`, 1))
	n := c.nodes[0]
	hour := limit(t, 10, "1/1h")
	c.cut(down)
	n.take(4)
	c.cut(silent)
	n.take(1)
	c.clock.Advance(store.RetryHorizon.Microseconds())
	c.cut(up)
	n.take(1)
	if got := c.missing("all:", hour).Whole(); got != 5 { // and what came back in two minutes
		t.Errorf("the store's bucket misses %v, want nearly 6", c.missing("all:", hour))
	}
}

// No take of a key succeeds while its local costs are being charged.
func TestRecovery_NobodySlipsThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, 1, localRule)
		n := c.nodes[0]
		c.cut(down)
		n.drain()
		c.cut(up)
		gate := make(chan struct{})
		charges := 0
		n.line.hook = func(m mete.Mode) {
			if m.MaxWait == bucket.Forced {
				charges++
				<-gate
			}
		}
		taken := n.line.takes.Load()
		var wait sync.WaitGroup
		for range 10 {
			wait.Go(func() {
				if d := n.take(1); d.Allowed || d.Degraded {
					t.Errorf("a take during recovery: %+v, want denied by the store", d)
				}
			})
		}
		synctest.Wait()
		if got := n.line.takes.Load() - taken; got != 1 {
			t.Errorf("%d calls of the store, want 1: the charge", got)
		}
		close(gate)
		wait.Wait()
		if got := n.line.takes.Load() - taken; got != 11 || charges != 1 {
			t.Errorf("%d calls of the store, %d charges; want 11, 1", got, charges)
		}
	})
}

// A take that waits for a hanging charge waits at most for its deadline, and is then decided locally.
func TestRecovery_Hangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, 1, localRule)
		n := c.nodes[0]
		c.cut(down)
		n.take(8)
		c.cut(up)
		gate := make(chan struct{})
		n.line.hook = func(m mete.Mode) {
			if m.MaxWait == bucket.Forced {
				<-gate
			}
		}
		var first sync.WaitGroup
		first.Go(func() { n.take(1) })
		synctest.Wait()
		began := time.Now()
		d := n.take(1)
		if took := time.Since(began); !d.Allowed || d.Failure != store.FailureTimeout || took != 50*time.Millisecond {
			t.Errorf("%+v after %v; want one of the last 2, locally, after 50ms", d, took)
		}
		n.line.hook = nil
		close(gate)
		first.Wait()
		// Two charges: one of 8, and one of the 1 that arrived during the first.
		if got, s := c.missing("all:", tenOne(t)), n.Stats(); got != 10*bucket.Token || s.Charged != 9000 || s.Unsettled != 0 {
			t.Errorf("the store's bucket misses %v, stats %+v", got, s)
		}
	})
}

// A key with a permanent store error does not block the charges of other keys.
func TestRecovery_OneKeyFails(t *testing.T) {
	c := start(t, 1, strings.Replace(localRule, `"limit_keys": []`, `"limit_keys": ["header:k"]`, 1))
	n := c.nodes[0]
	take := func(key int) {
		if _, err := n.Take(t.Context(), mete.Request{Attributes: mete.Attrs{"header:k": strconv.Itoa(key)}}); err != nil {
			t.Fatal(err)
		}
	}
	c.cut(down)
	for key := range 100 {
		take(key)
	}
	c.cut(up)
	n.line.refuses = "all:k=50"
	for range 5000 {
		if err := n.Recover(t.Context()); err == nil {
			t.Fatal("recover: no error, want that of the key")
		}
		if n.Stats().Unsettled == 1 {
			return
		}
	}
	t.Errorf("stats %+v, want one unsettled key", n.Stats())
}

// Costs above the debt limit are counted as excess.
func TestRecovery_MayNotOwe(t *testing.T) {
	c := start(t, 2, strings.Replace(localRule, `"burst": 10`, `"burst": 10, "max_reserved": 2`, 1))
	c.nodes[0].line.cut(down)
	c.nodes[0].drain()
	c.nodes[1].drain() // it reaches the store, and takes all 10
	c.nodes[0].line.cut(up)
	if d := c.nodes[0].take(1); d.Allowed || d.Degraded || d.RetryAfter != 3*time.Second {
		t.Errorf("after 15 of 10: %+v", d)
	}
	if got, want := c.nodes[0].Stats(), (mete.Stats{Local: 6, SpentLocally: 5000, Charged: 2000, Excess: 3000}); got != want {
		t.Errorf("stats %+v, want %+v", got, want)
	}
}

// Accounts of clients that never return are closed when nothing is left to charge.
func TestRecovery_Sweep(t *testing.T) {
	c := start(t, 1, strings.Replace(localRule, `"limit_keys": []`, `"limit_keys": ["path"]`, 1))
	n := c.nodes[0]
	take := func(path string) {
		if _, err := n.Take(t.Context(), mete.Request{Attributes: mete.Attrs{"path": path}}); err != nil {
			t.Fatal(err)
		}
	}
	c.cut(down)
	for i := range 300 {
		take(string(rune('a' + i)))
	}
	if got := n.Stats().Unsettled; got != 300 {
		t.Errorf("%d keys unsettled, want 300", got)
	}
	c.cut(up)
	c.advance(10)
	for range 64 {
		c.advance(0.1)
		take("another")
	}
	if got, want := n.Stats(), (mete.Stats{Local: 300, SpentLocally: 300_000, Refilled: 300_000}); got != want {
		t.Errorf("stats %+v, want %+v", got, want)
	}
}

// Local buckets ignore shards, and shards are charged the local costs.
func TestRecovery_Shards(t *testing.T) {
	c := start(t, 1, strings.Replace(localRule, `"burst": 10`, `"burst": 10, "shards": 2`, 1))
	n := c.nodes[0]
	n.take(1)
	c.cut(down)
	if got := n.drain(); got < 8 || got > 9 { // what two of two shards show is not all there is to know
		t.Errorf("got %d of 9", got)
	}
	c.cut(lossy)
	n.take(1)
	c.cut(up)
	if got := n.drain(); got > 1 {
		t.Errorf("got %d after recovery, want 1 at most", got)
	}
	if s := n.Stats(); s.Charged != s.SpentLocally || s.Unsettled != 0 {
		t.Errorf("stats %+v, want all charged", s)
	}
}

// Local costs are charged before their refund. Otherwise the refund would go to a bucket that never paid.
func TestRefund_AfterAnOutage(t *testing.T) {
	c := start(t, 1, localRule)
	n := c.nodes[0]
	c.cut(down)
	n.take(4)
	if err := n.Refund(t.Context(), mete.Request{Cost: 4}); mete.Spent(err) != mete.NotSpent {
		t.Errorf("refund while the store is down: error %v, want one that changed nothing", err)
	}
	c.cut(up)
	if err := n.Refund(t.Context(), mete.Request{Cost: 3}); err != nil {
		t.Fatal(err)
	}
	if got := c.missing("all:", tenOne(t)); got != bucket.Token {
		t.Errorf("the store's bucket misses %v, want 1 of the 4", got)
	}
}

// A reset also drops local costs.
func TestReset_AfterAnOutage(t *testing.T) {
	c := start(t, 1, localRule)
	n := c.nodes[0]
	c.cut(down)
	n.drain()
	c.cut(up)
	if err := n.Reset(t.Context(), mete.Request{}); err != nil {
		t.Fatal(err)
	}
	if got := n.drain(); got != 10 {
		t.Errorf("got %d after a reset, want 10", got)
	}
}

// Denials add nothing to charge, although the local store reads its clock slightly later than the limiter.
func TestRecovery_DenialsChargeNothing(t *testing.T) {
	clock := storetest.NewClock()
	line := &wire{Store: storetest.NewModel(clock.Now)}
	local := &slow{Store: storetest.NewModel(clock.Now), clock: clock}
	l, err := mete.New(line, load(t, `{"rules": [`+localRule+`]}`), mete.Config{Local: local, Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	n := &node{t, l, line}
	n.drain()
	line.cut(down)
	local.looks = 3000 // while the account is opened
	if d := n.take(5); d.Allowed || !d.Degraded {
		t.Fatalf("5 of 0, locally: %+v", d)
	}
	line.cut(up)
	if err := l.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := n.Stats(), (mete.Stats{Local: 1}); got != want {
		t.Errorf("stats %+v, want %+v: nothing was spent", got, want)
	}
}

// slow is a local store with a clock that advances once by so many microseconds before it reads a bucket.
type slow struct {
	mete.Store
	clock *storetest.Clock
	looks int64
}

func (s *slow) Take(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	if mode.DryRun {
		s.clock.Advance(s.looks)
		s.looks = 0
	}
	return s.Store.Take(ctx, dst, charges, mode)
}
