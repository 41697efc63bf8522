// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/storetest"
)

// An ideal bucket is charged with every admitted cost, without a debt limit. Its debt beyond the capacity is
// the largest violation of the bound over all intervals that end now.
type ideal struct {
	limit bucket.Limit
	state bucket.State
	total bucket.Tokens
	worst bucket.Tokens

	perOutage bucket.Tokens // what one outage may add: see doc/architecture.md
	outages   int           // that began since the bucket was full last
	stale     bucket.Tokens // by how much worst exceeded what so many outages may add
}

func (b *ideal) charge(now bucket.Instant, cost bucket.Tokens) {
	var snap bucket.Snapshot
	b.state, snap = b.limit.Reserve(b.state, now, cost, bucket.Forced)
	b.total += cost
	over := snap.Missing() - b.limit.Capacity()
	b.worst = max(b.worst, over)
	if snap.Missing() == cost {
		b.outages = min(b.outages, 1) // the one that may still go on
	}
	b.stale = max(b.stale, over-bucket.Tokens(b.outages)*b.perOutage)
}

// A schedule configures a random run.
type schedule struct {
	nodes    int
	faults   []fault
	together bool // all wires fail and recover at once
	seeing   bool // every node looks at the bucket right before, and recovers right after
	rule     string
	denyFor  time.Duration // as Config.DenyFor
}

// bursty is a limit of 60 tokens, refilled at 7 per second.
const bursty = `"algorithm_config": {"rps": 7, "burst": 60}`

// run lets clients take as much as they can, through outages.
func (s schedule) run(t *testing.T, seed uint64) (*cluster, *ideal) {
	t.Helper()
	r := rand.New(testseed.PCG(seed, 7))
	if s.rule == "" {
		s.rule = bursty
	}
	c := startDenying(t, s.nodes, `{"name": "all", "limit_keys": [], "on_store_error": "local", `+s.rule+`}`, s.denyFor)
	b := &ideal{limit: c.nodes[0].Policy().Rules()[0].Limits[0].Bucket.ForKey("all:")}
	b.perOutage = b.limit.Capacity() * bucket.Tokens(s.nodes-1) / bucket.Tokens(s.nodes)
	for range 2000 {
		n := c.nodes[r.IntN(len(c.nodes))]
		switch r.IntN(30) {
		case 0:
			if n.line.fault.Load() == int32(up) {
				b.outages++
			}
			s.change(c, n, s.faults[r.IntN(len(s.faults))])
		case 1, 2:
			s.change(c, n, up)
		case 3:
			c.advance(r.Float64() * 20)
		}
		c.clock.Advance(r.Int64N(300_000))
		cost := bucket.Tokens(1 + r.IntN(5000))
		before := n.Stats().DeniedFromMemory
		d, err := n.Take(t.Context(), mete.Request{Cost: mete.TokensOf(cost)})
		if err != nil {
			t.Fatal(err)
		}
		if d.Allowed {
			b.charge(c.clock.Now(), cost)
		}
		if n.Stats().DeniedFromMemory > before && c.missing("all:", b.limit)+cost <= b.limit.Capacity() {
			t.Fatalf("%+v, seed %d: a cost of %v was denied from memory, %+v; the store has room for it", s, seed, cost, d)
		}
	}
	s.change(c, c.nodes[0], up)
	c.cut(up) // and let everybody charge what it owes
	for _, n := range c.nodes {
		if d := n.take(1); d.Allowed {
			b.charge(c.clock.Now(), bucket.Token)
		}
	}
	return c, b
}

func (s schedule) change(c *cluster, n *node, f fault) {
	if !s.together {
		n.line.cut(f)
		return
	}
	for _, m := range c.nodes {
		if s.seeing && f != up {
			if _, err := m.Peek(c.Context(), mete.Request{}); err != nil {
				c.Fatal(err)
			}
		}
	}
	c.cut(f)
	for _, m := range c.nodes {
		if s.seeing && f == up {
			if err := m.Recover(c.Context()); err != nil {
				c.Fatal(err)
			}
		}
	}
}

// stats adds up the counters of the nodes.
func (c *cluster) stats() (sum mete.Stats) {
	for _, n := range c.nodes {
		s := n.Stats()
		sum.SpentLocally += s.SpentLocally
		sum.Charged += s.Charged
		sum.Refilled += s.Refilled
		sum.Excess += s.Excess
		sum.Unsettled += s.Unsettled
	}
	return sum
}

// If all nodes lose the store at once, know its content, and recover at once, nothing is admitted beyond the bound.
func TestOutage_KeepsTheBound(t *testing.T) {
	for _, s := range []schedule{
		{nodes: 1, faults: []fault{down, silent, lossy}},
		{nodes: 1, faults: []fault{silent}},
		{nodes: 3, faults: []fault{down}, together: true, seeing: true},
		{nodes: 4, faults: []fault{down, silent}, together: true, seeing: true},
		{nodes: 1, faults: []fault{down, silent, lossy}, rule: `"algorithm_config": {"refill": "interval", "rate": "30/5s", "burst": 60}`},
		{nodes: 1, faults: []fault{down, silent, lossy}, rule: `"algorithm": "fixed_window", "algorithm_config": {"tokens": 60, "window": "9s", "anchor": "key"}`},
		{nodes: 1, faults: []fault{down, silent, lossy}, rule: `"algorithm": "sliding_window", "algorithm_config": {"tokens": 60, "window": "9s"}`},
		{nodes: 1, faults: []fault{down, silent, lossy}, rule: `"algorithm": "sliding_log", "algorithm_config": {"tokens": 60, "window": "9s"}`},
		{nodes: 3, faults: []fault{down, silent}, together: true, seeing: true, rule: `"algorithm": "fixed_window", "algorithm_config": {"tokens": 60, "window": "9s"}`},
		{nodes: 3, faults: []fault{down, silent}, together: true, seeing: true, rule: `"algorithm": "sliding_window", "algorithm_config": {"tokens": 60, "window": "9s"}`},
	} {
		for seed := range uint64(8) {
			c, b := s.run(t, seed)
			// Allow for rounding and costs above the share: 5 of 15 is below it.
			if rounding := bucket.Tokens(100 * s.nodes); b.worst > rounding {
				t.Errorf("%+v, seed %d: %v beyond the bound, stats %+v", s, seed, b.worst, c.stats())
			}
			if sum := c.stats(); sum.SpentLocally == 0 || sum.Excess != 0 || sum.Unsettled != 0 {
				t.Errorf("%+v, seed %d: stats %+v", s, seed, sum)
			}
		}
	}
}

// Costs that nodes did not know, or did not charge at once, are bounded.
func TestOutage_Staleness(t *testing.T) {
	worst := bucket.Tokens(0)
	for seed := range uint64(16) {
		c, b := schedule{nodes: 4, faults: []fault{down}, together: true}.run(t, seed)
		if worst = max(worst, b.worst); b.stale > 0 {
			t.Errorf("seed %d: %v beyond the bound, %v more than its outages may add, stats %+v", seed, b.worst, b.stale, c.stats())
		}
	}
	if worst == 0 {
		t.Error("nothing beyond the bound: the test shows nothing")
	}
}

// Whenever any node loses the store, every admitted cost is charged to the store, or counted as refilled
// or excess.
func TestOutage_Conservation(t *testing.T) {
	for _, faults := range [][]fault{{down}, {silent}, {down, silent, lossy}} {
		for seed := range uint64(10) {
			s := schedule{nodes: 1 + int(seed%5), faults: faults}
			begin := int64(1_700_000_000_000_000)
			c, b := s.run(t, seed)
			sum, where := c.stats(), fmt.Sprintf("%+v, seed %d", s, seed)
			refilled := bucket.PerSecond(7 * bucket.Token).TokensIn(bucket.Instant(int64(c.clock.Now()) - begin).Time().Sub(bucket.Instant(0).Time()))
			if most := refilled + c.missing("all:", b.limit) + sum.Refilled + sum.Excess; b.total > most+1000 {
				t.Errorf("%s: %v admitted, of which %v at most are accounted for: %+v", where, b.total, most, sum)
			}
			if sum.Charged+sum.Refilled+sum.Excess != sum.SpentLocally || sum.Unsettled != 0 {
				t.Errorf("%s: stats %+v do not add up", where, sum)
			}
		}
	}
}

// Local takes after a charge with a lost answer are charged, too, when the older costs have left the local log.
// Otherwise a client would get the limit twice.
func TestOutage_LogForgetsNothing(t *testing.T) {
	c := start(t, 1, `{"name": "all", "limit_keys": [], "on_store_error": "local", "algorithm": "sliding_log", "algorithm_config": {"tokens": 60, "window": "9s"}}`)
	n := c.nodes[0]
	c.cut(down)
	for range 59 {
		n.take(1)
	}
	c.advance(8.5)
	n.take(1)
	c.cut(lossy) // the charge of 60 arrives, at 8.6 s
	c.advance(0.1)
	n.take(1)
	c.advance(7.4) // at 16 s, 59 have left the local log
	during := n.drain()
	c.cut(up)
	n.take(1)
	c.advance(1.7) // at 17.7 s, the charge leaves the log of the store
	if after := n.drain(); during+after > 60 {
		t.Errorf("%d admitted within 2 s, %d of them at the end: want 60 at most", during+after, after)
	}
}

// sticky is a local store that fails to reset.
type sticky struct{ mete.Store }

func (sticky) Reset(context.Context, []string) error { return errors.New("sticky: no reset") }

// After a failed reset of the local log, later costs are charged even when the older ones have left the window.
// Otherwise a client would get the limit twice.
func TestOutage_LogAfterAFailedReset(t *testing.T) {
	c, n := startSticky(t, `"algorithm": "sliding_log", "algorithm_config": {"tokens": 60, "window": "9s"}`)
	c.cut(down)
	for range 58 {
		n.take(1)
	}
	c.cut(up)
	if err := n.Reset(t.Context(), mete.Request{}); err != nil {
		t.Fatal(err)
	}
	c.advance(8.5)
	n.take(1) // the next local bucket begins with its cost
	c.cut(down)
	n.take(1)
	c.advance(1) // at 9.5 s, 58 have left the local log
	during := n.drain()
	c.cut(up)
	if after := n.drain(); during != 58 || after != 0 {
		t.Errorf("2 and %d admitted before the end of the outage and %d after it, within 1 s: want 58 and 0", during, after)
	}
	if s := n.Stats(); s.Charged != 59*bucket.Token || s.Refilled != 58*bucket.Token {
		t.Errorf("stats %+v, want 59 charged, and refilled the 58 before the reset", s)
	}
}

// A local bucket that was not reset lacks at least its initial share, even without a debt limit.
func TestOutage_NoDebtAfterAFailedReset(t *testing.T) {
	for _, rule := range []string{
		`"algorithm_config": {"rate": "1/1h", "burst": 10, "max_reserved": 0}`,
		`"algorithm_config": {"refill": "interval", "rate": "1/1h", "burst": 10, "max_reserved": 0}`,
		`"algorithm": "sliding_window", "algorithm_config": {"tokens": 10, "window": "1h"}`,
		`"algorithm": "sliding_log", "algorithm_config": {"tokens": 10, "window": "1h"}`,
	} {
		c, n := startSticky(t, rule)
		c.cut(down)
		n.take(5)
		c.cut(up)
		n.take(4)
		c.cut(down)
		during := n.drain()
		c.cut(up)
		if after := n.drain(); during+after > 1 {
			t.Errorf("%s: %d admitted in the second outage and %d after it, want 1 of 10 at most", rule, during, after)
		}
	}
}

// startSticky returns a node with a local store that fails to reset.
func startSticky(t *testing.T, rule string) (*cluster, *node) {
	t.Helper()
	c := &cluster{T: t, clock: storetest.NewClock()}
	c.store = storetest.NewModel(c.clock.Now)
	line := &wire{Store: c.store}
	policy := load(t, `{"rules": [{"name": "all", "limit_keys": [], "on_store_error": "local", `+rule+`}]}`)
	l, err := mete.New(line, policy, mete.Config{Local: sticky{storetest.NewModel(c.clock.Now)}, Now: c.clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	c.nodes = []*node{{t, l, line}}
	return c, c.nodes[0]
}
