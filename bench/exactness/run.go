// SPDX-License-Identifier: Apache-2.0

package exactness

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
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

// take records one take. The keys are those of the limits, and an empty one is not charged.
func (r *run) take(n Node, keys ...string) (judge.Outcome, time.Duration) {
	limits := r.setup.Limits
	for len(keys) < len(limits) {
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
	for i, key := range keys {
		if key != "" {
			limit := judge.Limit{Capacity: limits[i].Capacity, Period: limits[i].Period}
			t.Charges = append(t.Charges, judge.Charge{Key: fmt.Sprint(i, ":", key), Limit: limit})
		}
	}
	r.history.Add(t)
	return t.Outcome, retry
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
	probes    = 3
	longProbe = 3 * time.Second // the longest wait that a probe follows
)

// probe checks Retry-After: a caller, alone on its key, is denied, waits as long as it was told, and asks again.
func (r *run) probe(n Node, limit int, key string) {
	keys := make([]string, limit+1)
	keys[limit] = key
	for range probes {
		outcome, retry := judge.Admitted, wire.NoRetry
		for range 3 * r.setup.Limits[limit].Capacity {
			if outcome, retry = r.take(n, keys...); outcome != judge.Admitted {
				break
			}
		}
		if outcome != judge.Denied || retry == wire.NoRetry || retry > longProbe {
			return
		}
		time.Sleep(retry)
		if outcome, _ = r.take(n, keys...); outcome != judge.Failed {
			r.cell.Asked++
		}
		if outcome == judge.Denied {
			r.cell.Failed++
		}
	}
}
