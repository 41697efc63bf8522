// SPDX-License-Identifier: Apache-2.0

package bucket_test

// The sliding log is a list of costs. The ones in (t − W, t] count.
type list struct {
	l                   *oracleLimit
	limit, debt, length int64
	entries             []admission
}

func (o *oracle) entries(l *oracleLimit) *list {
	_, p := l.limit.Refill()
	g := &list{l: l, limit: int64(l.limit.Capacity()), debt: int64(l.limit.MaxReserved()), length: p, entries: o.log}
	if carried := o.carried(l); o.log == nil && carried.Sign() > 0 {
		missing := least(carried, l.capacity) // a stepped bucket's debt is not carried over
		g.entries = []admission{{max(o.asOf, 0), missing.Num().Int64()}}
	}
	return g
}

// now returns t, or the instant of the newest entry if that is later.
func (g *list) now(t int64) int64 {
	t = max(t, 0)
	for _, e := range g.entries {
		t = max(t, e.at)
	}
	return t
}

// live returns the entries that count at t.
func (g *list) live(t int64) (live []admission, sum int64) {
	now := g.now(t)
	for _, e := range g.entries {
		if e.at > now-g.length {
			live, sum = append(live, e), sum+e.cost
		}
	}
	return live, sum
}

func (g *list) admits(t, cost, maxWait int64) bool {
	_, sum := g.live(t)
	if maxWait == forced {
		return cost >= 0 && cost <= g.limit+g.debt-sum
	}
	return cost >= 0 && cost <= g.limit-sum
}

func (g *list) remaining(t int64) int64 { _, sum := g.live(t); return g.limit - sum }
func (g *list) full(t int64) bool       { _, sum := g.live(t); return sum == 0 }

// owes reports debt: a forced cost beyond the limit counts as debt until the log is empty.
func (g *list) owes(t, now int64) bool {
	_, before := g.live(now)
	_, sum := g.live(t)
	return before > g.limit && sum > 0
}

func (g *list) end() int64 { return g.now(0) + g.length }

func (g *list) spend(o *oracle, now, cost int64) {
	at := g.now(now)
	g.entries, _ = g.live(now)
	if last := len(g.entries) - 1; cost > 0 && last >= 0 && g.entries[last].at == at {
		g.entries[last].cost += cost
	} else if cost > 0 {
		g.entries = append(g.entries, admission{at, cost})
	}
	g.keep(o, at)
}

func (g *list) refund(o *oracle, now, amount int64) {
	live, _ := g.live(now)
	at := g.now(now)
	for len(live) > 0 && amount > 0 { // the oldest first
		back := min(amount, live[0].cost)
		amount, live[0].cost = amount-back, live[0].cost-back
		if live[0].cost == 0 {
			live = live[1:]
		}
	}
	g.entries = live
	g.keep(o, at)
}

func (g *list) keep(o *oracle, at int64) {
	_, sum := g.live(at)
	if sum > 0 {
		at = g.now(0)
	}
	o.write(g.l, sum, at)
	if sum > 0 {
		o.log = g.entries
	}
}
