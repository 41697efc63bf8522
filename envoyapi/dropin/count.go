// SPDX-License-Identifier: Apache-2.0

package dropin

import (
	"context"
	"fmt"
	"math"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// manyHits is the number of hits from which a map finds equal keys.
const manyHits = 16

// A state is the counter or bucket of a charge after its request.
type state struct {
	snapshot bucket.Snapshot
	count    uint64 // the hits in the window, without those of the charge
	shared   uint64 // the number of processes that share the limit: above 1 only for local buckets
}

// countHits counts the hits in fixed windows, and computes the status of each descriptor. Hits count even if a limit
// is exceeded. Runs of positive and of negative hits go to the store one after another, in the order of the request.
func (c *call) countHits(ctx context.Context, s *Service) error {
	c.choose(func(*hit) bool { return true })
	stopped := false
	if s.options.StopCounting {
		var err error
		if stopped, err = c.findExceeded(ctx, s); err != nil {
			return err
		}
	}
	for from := 0; from < len(c.hits); {
		to := from + 1
		for to < len(c.hits) && c.hits[to].negative == c.hits[from].negative {
			to++
		}
		run := c.hits[from:to]
		for i := range run {
			if h := &run[i]; stopped && !h.over && !h.negative {
				h.charged = 0
			}
		}
		var err error
		if run[0].negative {
			err = c.returnRun(ctx, s, run)
		} else {
			err = c.countRun(ctx, s, run)
		}
		if err != nil {
			return err
		}
		from = to
	}
	return nil
}

// countRun counts the hits of a run and computes their statuses. Each hit sees the earlier hits of the request on its
// counter.
func (c *call) countRun(ctx context.Context, s *Service, run []hit) error {
	c.collect(run)
	if err := c.charge(ctx, s.limiter.Charge); err != nil {
		return err
	}
	for i := range run {
		h := &run[i]
		if c.places[i] < 0 {
			continue
		}
		st := &c.states[c.places[i]]
		h.before = st.count
		st.count += min(h.charged, math.MaxUint64-st.count)
		h.after = st.count
		if h.charged != h.hits { // not counted: the reference server subtracts the hits all the same
			h.before = h.after - h.hits
		}
		h.judge(st)
	}
	return nil
}

// returnRun subtracts negative hits. A counter never goes below 0, and the status is never over the limit.
func (c *call) returnRun(ctx context.Context, s *Service, run []hit) error {
	c.collect(run)
	for charges := c.charges; len(charges) > 0; {
		some := charges[:min(len(charges), store.MaxCharges)]
		charges = charges[len(some):]
		if err := s.limiter.Refund(ctx, mete.Request{Charges: some}); err != nil {
			return err
		}
	}
	if err := c.look(ctx, s); err != nil {
		return err
	}
	for i := range run {
		if h := &run[i]; c.places[i] >= 0 {
			st := &c.states[c.places[i]]
			h.after = st.count
			h.judge(st)
			h.over = false
		}
	}
	return nil
}

// findExceeded marks the hits that would exceed their limit, and reports whether there are any.
func (c *call) findExceeded(ctx context.Context, s *Service) (bool, error) {
	c.collect(c.hits)
	if err := c.look(ctx, s); err != nil {
		return false, err
	}
	found := false
	for i := range c.hits {
		h := &c.hits[i]
		if c.places[i] >= 0 && !h.negative {
			st := &c.states[c.places[i]]
			h.over = st.count+min(h.hits, maxHits) > st.limit(h.rule)
			found = found || h.over
		}
	}
	return found, nil
}

// look reads the counters of the charges.
func (c *call) look(ctx context.Context, s *Service) error {
	for i := range c.charges {
		c.charges[i].Cost = 0
	}
	return c.charge(ctx, s.limiter.Peek)
}

// collect puts the charges of the chosen hits of a run into c.charges.
func (c *call) collect(run []hit) {
	clear(c.charges)
	clear(c.index)
	c.charges, c.places = c.charges[:0], c.places[:0]
	for i := range run {
		h := &run[i]
		if !h.chosen {
			c.places = append(c.places, -1)
			continue
		}
		cost := mete.Tokens(min(h.charged, maxHits))
		at := c.findCharge(h.key, len(run))
		if at < 0 {
			at = len(c.charges)
			c.charges = append(c.charges, mete.Charge{Key: h.key, Limit: h.bucket})
			if len(run) > manyHits {
				c.index[h.key] = at
			}
		}
		c.charges[at].Cost = min(c.charges[at].Cost+cost, maxHits)
		c.places = append(c.places, at)
	}
}

// findCharge returns the charge with a key, or -1.
func (c *call) findCharge(key string, hits int) int {
	if hits > manyHits {
		if c.index == nil {
			c.index = map[string]int{}
		}
		if at, ok := c.index[key]; ok {
			return at
		}
		return -1
	}
	for i := range c.charges {
		if c.charges[i].Key == key {
			return i
		}
	}
	return -1
}

// charge sends the charges to the store, at most [store.MaxCharges] at once, and fills in the states. The reference
// server does not count the hits of a request in one step either.
func (c *call) charge(ctx context.Context, send func(context.Context, mete.Request) (mete.Decision, error)) error {
	c.states = c.states[:0]
	for charges := c.charges; len(charges) > 0; {
		some := charges[:min(len(charges), store.MaxCharges)]
		charges = charges[len(some):]
		d, err := send(ctx, mete.Request{Charges: some})
		if err != nil {
			return err
		}
		if !d.Allowed && !d.Degraded {
			if d, err = chargeRest(ctx, &d, some, send); err != nil {
				return err
			}
		}
		limits := d.Limits()
		if len(limits) != len(some) {
			return outageError(&d)
		}
		for i := range limits {
			st := state{snapshot: limits[i].Snapshot, shared: 1}
			missing := uint64(st.snapshot.Missing() / bucket.Token)
			if full := st.snapshot.Limit.Capacity(); full > 0 && full < maxCount*bucket.Token {
				st.shared = uint64((maxCount*bucket.Token + full - 1) / full)
			}
			if st.count = missing; st.snapshot.Allowed {
				st.count = missing - min(missing, uint64(some[i].Cost))
			}
			c.states = append(c.states, st)
		}
	}
	return nil
}

// chargeRest charges a request again without the counters that are full. They exceed every limit already.
func chargeRest(ctx context.Context, d *mete.Decision, charges []mete.Charge, send func(context.Context, mete.Request) (mete.Decision, error)) (mete.Decision, error) {
	for i, l := range d.Limits() {
		if !l.Allowed {
			charges[i].Cost = 0
		}
	}
	return send(ctx, mete.Request{Charges: charges})
}

// outageError returns the error of a decision that the store did not make.
func outageError(d *mete.Decision) error {
	if d.Err != nil {
		return d.Err
	}
	return fmt.Errorf("%d limits decided: want one for each counter", len(d.Limits()))
}

// limit returns the requests that this process admits. Local buckets divide a limit by the number of processes.
func (st *state) limit(r *rule) uint64 { return uint64(r.limit.RequestsPerUnit) / st.shared }

// judge computes the status of a hit from its counter.
func (h *hit) judge(st *state) {
	h.limit = st.limit(h.rule)
	if h.over = h.after > h.limit; !h.over {
		h.remaining = uint32(h.limit - h.after)
	}
	_, now := st.snapshot.Verdict()
	h.reset = h.rule.window.resetAfter(now)
}
