// SPDX-License-Identifier: Apache-2.0

package bucket_test

// The sliding window is two counters that move on at every multiple of its length, plus an inequality.
type counters struct {
	l                       *oracleLimit
	limit, debt, length     int64
	start, previous, recent int64
}

func (o *oracle) window(l *oracleLimit) *counters {
	_, p := l.limit.Refill()
	c := &counters{l: l, limit: int64(l.limit.Capacity()), debt: int64(l.limit.MaxReserved()), length: p}
	c.start = floorTo(max(o.asOf, 0), 0, p)
	c.recent = o.carried(l).Num().Int64()
	if o.unit == l.unit {
		c.previous = o.prev
		c.recent -= o.prev
	}
	return c
}

// at returns the counters at t.
func (c *counters) at(t int64) counters {
	now := *c
	for now.start+now.length <= t {
		now.start, now.previous, now.recent = now.start+now.length, now.recent, 0
		if now.previous == 0 {
			now.start = floorTo(t, 0, now.length)
		}
	}
	return now
}

// counts returns the count at t, in 4096ths.
func (c *counters) counts(t int64) int64 {
	now := c.at(t)
	e := max(t-now.start, 0) * 4096 / now.length
	return now.previous*(4096-e) + now.recent*4096
}

func (c *counters) admits(t, cost, maxWait int64) bool {
	if cost < 0 || cost > c.limit+c.debt {
		return false
	}
	if maxWait == forced && c.at(t).recent+cost <= c.limit+c.debt {
		return true
	}
	return maxWait != forced && c.counts(t)+cost*4096 <= c.limit*4096
}

func (c *counters) remaining(t int64) int64 {
	// The largest cost that would be admitted.
	free := c.limit*4096 - c.counts(t)
	return (free - (free%4096+4096)%4096) / 4096
}

func (c *counters) full(t int64) bool    { now := c.at(t); return now.previous == 0 && now.recent == 0 }
func (c *counters) owes(t, _ int64) bool { return c.counts(t) > c.limit*4096 }
func (c *counters) end() int64           { return c.start + 2*c.length }

func (c *counters) spend(o *oracle, now, cost int64) {
	w := c.at(now)
	w.recent += cost
	w.keep(o)
}

func (c *counters) refund(o *oracle, now, amount int64) {
	w := c.at(now)
	left := max(amount-w.recent, 0)
	w.recent = max(w.recent-amount, 0)
	w.previous = max(w.previous-left, 0)
	w.keep(o)
}

func (c *counters) keep(o *oracle) {
	o.write(c.l, c.recent+c.previous, c.start)
	o.prev = c.previous
}
