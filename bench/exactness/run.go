// SPDX-License-Identifier: Apache-2.0

package exactness

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete/bench/exactness/clock"
	"github.com/metehq/mete/bench/exactness/judge"
	"github.com/metehq/mete/bench/exactness/wire"
)

// A Cell is the result of a contender under a condition.
type Cell struct {
	Reason string // why there is no result, or ""

	Above  int // tokens above the bound in the worst window
	Lost   int // tokens
	Asked  int // times that a caller waited as long as it was told
	Failed int // times that it was denied nevertheless

	Version string
	Errors  int
}

// run is one contender under one condition.
type run struct {
	t       testing.TB
	c       Contender
	rng     *rand.Rand
	clock   *clock.Clock // of the machine
	setup   wire.Setup
	history judge.History
	cell    Cell
	errors  atomic.Int64
	asked   atomic.Int64
	failed  atomic.Int64
}

// Run measures a contender under a condition. The seed decides the traffic.
func Run(t testing.TB, c Contender, condition Condition, seed uint64) Cell {
	if reason := c.Reason(condition.Name); reason != "" {
		return Cell{Reason: reason}
	}
	hash := fnv.New64()
	fmt.Fprint(hash, c.Title(), condition.Name)
	r := &run{
		t: t, c: c, rng: rand.New(rand.NewPCG(seed, hash.Sum64())), clock: clock.New(t),
		setup: wire.Setup{Limits: condition.Limits},
	}
	condition.run(r)
	r.cell.Above, r.cell.Lost, r.cell.Errors = r.history.Excess(c.Shape), r.history.Lost(c.Shape), int(r.errors.Load())
	r.cell.Asked, r.cell.Failed = int(r.asked.Load()), int(r.failed.Load())
	return r.cell
}

// start starts a process of the contender.
func (r *run) start(c *clock.Clock) Node {
	r.t.Helper()
	n, err := r.c.Start(r.t, c, r.setup)
	if err != nil {
		r.t.Fatalf("start %s: %v", r.c.Title(), err)
	}
	r.t.Cleanup(n.Close)
	r.cell.Version = n.ContenderVersion()
	return n
}

// take takes once and records it. The keys are those of the limits, and an empty one is not charged.
func (r *run) take(n Node, keys ...string) (judge.Outcome, time.Duration) {
	limits := r.setup.Limits
	t, retry := r.ask(n, keys)
	for i, key := range keys {
		if key != "" {
			limit := judge.Limit{Capacity: limits[i].Capacity, Period: limits[i].Period}
			t.Charges = append(t.Charges, judge.Charge{Key: fmt.Sprint(i, ":", key), Limit: limit})
		}
	}
	r.history.Add(t)
	return t.Outcome, retry
}

// ask takes once and records only an error.
func (r *run) ask(n Node, keys []string) (judge.Take, time.Duration) {
	for len(keys) < len(r.setup.Limits) {
		keys = append(keys, "")
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	t := judge.Take{Called: time.Now()}
	allowed, retry, err := n.Take(ctx, keys)
	t.Done = time.Now()
	switch {
	case err != nil:
		t.Outcome = judge.Failed
		r.errors.Add(1)
		if r.errors.Load() <= 20 {
			r.t.Logf("%v", err)
		}
	case !allowed:
		t.Outcome = judge.Denied
	}
	return t, retry
}

// patience is the time after which a caller gives up.
const patience = 5 * time.Second

// pause waits for a random time around d.
func (r *run) pause(d time.Duration) { time.Sleep(d/2 + time.Duration(r.rng.Int64N(int64(d)))) }

// change changes the limits and records it for a key of the first one.
func (r *run) change(n Node, key string, limits ...wire.Limit) bool {
	r.t.Helper()
	err := n.Change(limits)
	if errors.Is(err, wire.ErrUnsupported) {
		r.cell.Reason = fixedLimit
		return false
	}
	if err != nil {
		r.t.Fatalf("change the limit: %v", err)
	}
	r.setup.Limits = limits
	r.history.Changed("0:"+key, time.Now())
	return true
}

const (
	probes    = 20 // of each process
	probeKeys = 5
	longProbe = 3 * time.Second // the longest wait that a probe follows
)

// probeNew checks Retry-After on keys that no traffic has used.
func (r *run) probeNew(n Node, limit int, name string) {
	r.probe(n, limit, probeNames(name))
}

// probeNames returns the keys of a probe.
func probeNames(name string) (keys []string) {
	for i := range probeKeys {
		keys = append(keys, fmt.Sprint(name, i))
	}
	return keys
}

// probe checks Retry-After: callers, each alone on its key, are denied, wait as long as they were told, and ask again.
// Their takes are not traffic: how often the probe asks does not change the other figures.
func (r *run) probe(n Node, limit int, keys []string) {
	var all sync.WaitGroup
	for _, key := range keys {
		all.Go(func() { r.probeKey(n, limit, key, probes/len(keys)) })
	}
	all.Wait()
}

// probeKey stops at a wait that is unknown or too long.
func (r *run) probeKey(n Node, limit int, key string, times int) {
	keys := make([]string, limit+1)
	keys[limit] = key
	for range times {
		var t judge.Take
		retry := wire.NoRetry
		for range 3 * r.setup.Limits[limit].Capacity {
			if t, retry = r.ask(n, keys); t.Outcome != judge.Admitted {
				break
			}
		}
		if t.Outcome != judge.Denied || retry == wire.NoRetry || retry > longProbe {
			return
		}
		time.Sleep(retry)
		if t, _ = r.ask(n, keys); t.Outcome != judge.Failed {
			r.asked.Add(1)
		}
		if t.Outcome == judge.Denied {
			r.failed.Add(1)
		}
	}
}
