// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"slices"
	"strings"
)

// The model computes with integers of its own: thousandths of a token, and microseconds. Nothing refills during a history.
// It imports nothing of mete.
const (
	token   = 1000
	horizon = 2 * 60 * 1_000_000 // how long the store remembers an ID, and a hold after its end
	lease   = 60 * 60 * 1_000_000

	grain = 10 // of all costs; capacities are no multiples
	near  = 3  // the largest sum of roundings
)

// A limit is one version of the limit of a key.
type limit struct {
	Capacity int64 `json:"capacity,omitempty"`
	Debt     int64 `json:"debt,omitempty"`  // above the capacity, by forced charges
	Slots    int   `json:"slots,omitempty"` // of a concurrency limit, which has no tokens
}

type model struct {
	limits []limit
	parts  bool            // takes may be undone
	given  map[string]bool // keys to which a history with a failover returns tokens
}

// step returns the state after an operation. It returns false if the store could not have given this answer in state s.
func (m *model) step(s state, o *op) (state, bool) {
	s, ok := m.change(s, o)
	for _, c := range o.Charges {
		for _, a := range s.row(c.Key) {
			if m.given[c.Key] && a.hi > s.most(c.Key) {
				s = s.set("most "+c.Key, a.hi)
			}
		}
	}
	return s, ok
}

func (m *model) change(s state, o *op) (state, bool) {
	switch o.Kind {
	case take, force, peek, renewSlot:
		return m.take(s, o)
	case undo:
		r, ok := s.get("id " + o.ID).(remembered)
		if ok && !r.kept && !r.undone {
			r.undone = true
			s = m.cancel(s, o.Charges[0], o.Charges[0].Cost, func(account) bool { return false }).set("id "+o.ID, r)
		}
		return s, ok // else it would come before its take
	case refund, cancel, release:
		return m.refund(s, o), true
	case reset:
		for _, c := range o.Charges {
			s = s.set("row "+c.Key, row(nil)).set("slots "+c.Key, map[string]int64{})
			s = s.endParts(false, func(p *part) bool { return p.Key == c.Key })
		}
		return s, true
	case hold:
		return m.hold(s, o)
	case settle, renewHold:
		return m.settle(s, o)
	case tick:
		return m.expire(s.set("now", s.now()+o.Amount)), true
	case wipe:
		return state{}.set("now", s.now()).set("wiped", true), true
	case lose:
		for _, t := range s.things {
			switch v := t.value.(type) {
			case row:
				v = v.returned(1<<40, func(account) bool { return true }, func(account) bool { return true })
				if key := strings.TrimPrefix(t.name, "row "); m.given[key] { // their return may be lost. Limits do not change here
					v = row{{hi: s.most(key), fraction: true}}
				}
				s = s.set(t.name, v)
			case remembered:
				v.maybe = true
				s = s.set(t.name, v)
			}
		}
		return s.set("wiped", true), true
	}
	panic("unknown operation " + string(o.Kind))
}

// accountFor returns the account of a version. A new one misses as much as the emptiest account, at most its own capacity. It
// also takes over that account's debt, at most its own debt. fresh reports whether the store must write the account: it misses
// some amount, which may be less than a thousandth.
func (m *model) accountFor(r row, version int) (a account, fresh bool) {
	if i := r.find(version); i >= 0 {
		if a = r[i]; a.dropped {
			anew, _ := m.accountFor(slices.Delete(slices.Clone(r), i, i+1), version)
			a.hi = max(a.hi, anew.hi)
		}
		return a, false
	}
	a = account{version: version}
	emptiest, exact := int64(0), true
	for _, o := range r {
		from, to := &m.limits[o.version], &m.limits[version]
		moved := min(o.hi, from.Capacity, to.Capacity) + min(max(o.hi-from.Capacity, 0), to.Debt)
		a.fraction, exact = a.fraction || o.fraction || o.dropped, exact && o.lo == o.hi
		if o.hi > emptiest {
			emptiest, a.lo = o.hi, moved
		}
		a.hi = max(a.hi, moved)
	}
	if exact {
		a.hi = a.lo
	} else {
		a.lo = 0
	}
	return a, a.hi > 0 || a.fraction
}

// pay returns the state after the account a has paid cost. The other accounts pay until they are empty. If all of them are
// full, the store drops them, and their holds return nothing. They may be full if the model does not know them exactly.
func (m *model) pay(s state, key string, a account, cost int64) state {
	a.dropped = false
	next, full, exact := row{a}, true, true
	for _, o := range s.row(key) {
		if o.version == a.version {
			continue
		}
		full = full && (o.dropped || o.lo <= near)
		exact = exact && o.hi == 0 && !o.fraction && !o.dropped
		capacity := m.limits[o.version].Capacity
		if o.hi = max(o.hi, min(o.hi+cost, capacity)); !o.dropped {
			o.lo = max(o.lo, min(o.lo+cost, capacity))
		}
		next = append(next, o)
	}
	if len(next) > 1 && full {
		s = s.endParts(!exact, func(p *part) bool { return p.Key == key && p.Version != a.version })
		if exact {
			next = next[:1]
		}
	}
	for i := 1; i < len(next); i++ {
		if o := &next[i]; full || o.dropped {
			o.lo, o.dropped = 0, true
		}
	}
	return s.set("row "+key, next)
}

// take decides and charges. A remembered ID gets its answer again, as long as its slots are held.
func (m *model) take(s state, o *op) (state, bool) {
	again := true
	for _, c := range o.Charges {
		_, held := s.slots(c.Key)[c.Slot]
		again = again && (m.limits[c.Version].Slots == 0 || held)
	}
	name := "id " + o.ID
	if r, ok := s.get(name).(remembered); ok && o.ID != "" && again && !r.undone && s.now() < r.at+horizon {
		if m.parts { // the retry answers for the take, so that an attempt that failed cannot undo it
			r.kept = r.kept || !o.Answer.Unknown
			s = s.set(name, r)
		}
		same := o.Answer.Unknown || o.Answer.Allowed && (r.snaps == nil || sameSnaps(r.snaps, o.Answer.Snaps))
		switch {
		case !r.maybe:
			return s, same
		case same: // or charged again, with the same answer
			return m.forgetful(s, o), true
		}
	}
	s, snaps, allowed, ok := m.decide(s, o, o.Kind)
	if !allowed && m.parts && o.Answer.Unknown {
		s = s.set(name, remembered{at: s.now(), undone: true})
	} else if allowed && o.ID != "" && o.Kind != peek {
		s = s.set(name, remembered{at: s.now(), snaps: snaps, kept: m.parts && !o.Answer.Unknown})
	}
	return s, ok
}

// decide returns the answer to charges and the state after it. Without snaps the answer is unknown, and the state allows all
// possible ones. ok is false if the recorded answer differs.
func (m *model) decide(s state, o *op, kind kind) (after state, snaps []snap, allowed, ok bool) {
	known, there := !o.Answer.Unknown, int64(1<<50)
	accounts, fresh, exact := make([]account, len(o.Charges)), make([]bool, len(o.Charges)), true
	if known && len(o.Answer.Snaps) != len(o.Charges) {
		return s, nil, false, false
	}
	for i, c := range o.Charges {
		if m.limits[c.Version].Slots > 0 {
			continue
		}
		a, isNew := m.accountFor(s.row(c.Key), c.Version)
		if a.lo != a.hi && known { // the snapshot shows the amount
			seen := o.Answer.Snaps[i].Missing
			if o.Answer.Allowed && kind != peek {
				seen -= o.Answer.Snaps[i].Cost
			}
			if seen > a.hi+near || seen < a.lo-near { // both ends are as inexact as the amounts that sameSnaps accepts
				return s, nil, false, false
			}
			a.lo, a.hi, a.fraction = seen, seen, true
			isNew = isNew || a.dropped // or the store has kept it
			s = s.narrow(c.Key, a)
		}
		accounts[i], fresh[i], exact = a, isNew, exact && a.lo == a.hi
		there = min(there, max(m.limits[c.Version].Capacity-a.hi, 0))
	}
	allowed, snaps = true, make([]snap, len(o.Charges))
	for i, c := range o.Charges {
		l, shown := &m.limits[c.Version], &snaps[i]
		if l.Slots > 0 {
			held := s.slots(c.Key)
			_, mine := held[c.Slot]
			*shown = snap{mine || len(held) < l.Slots && kind != renewSlot, token, int64(len(held)) * token}
		} else {
			cost, most := c.Cost, l.Capacity
			if kind == force {
				most += l.Debt
			}
			if o.UpTo {
				if cost = upTo(cost, there); known && o.Answer.Snaps[i].Cost != cost {
					cost = upTo(c.Cost, there-near)
				}
			}
			*shown = snap{accounts[i].hi+cost <= most, cost, accounts[i].hi}
			if shown.Allowed && accounts[i].hi+cost >= most-near { // a fraction of a thousandth may decide
				exact = exact && known
				shown.Allowed = !known || o.Answer.Snaps[i].Allowed
			}
		}
		allowed = allowed && shown.Allowed
	}
	if !exact { // only if the answer is unknown
		return m.forgetful(s, o), nil, true, true
	}
	if after = s; kind == peek {
		return after, snaps, allowed, !known || o.Answer.Allowed == allowed && sameSnaps(o.Answer.Snaps, snaps)
	}
	for i, c := range o.Charges {
		if m.limits[c.Version].Slots > 0 {
			if held := s.slots(c.Key); allowed {
				if held[c.Slot] == 0 {
					snaps[i].Missing += token
				}
				held[c.Slot] = s.now() + lease
				after = after.set("slots "+c.Key, held)
			}
			continue
		}
		a, cost := accounts[i], int64(0)
		if allowed {
			cost = snaps[i].Cost
			snaps[i].Missing += cost
		}
		if a.lo, a.hi = a.lo+cost, a.hi+cost; allowed || fresh[i] {
			after = m.pay(after, c.Key, a, cost)
			after.row(c.Key)[0].dropped = !allowed && a.hi == 0 // the store wrote it only if it missed a fraction of a thousandth
		}
	}
	return after, snaps, allowed, !known || o.Answer.Allowed == allowed && sameSnaps(o.Answer.Snaps, snaps)
}

// forgetful returns a state for a take that may have been charged or not.
func (m *model) forgetful(s state, o *op) state {
	for _, c := range o.Charges {
		if l := &m.limits[c.Version]; l.Slots == 0 {
			a, _ := m.accountFor(s.row(c.Key), c.Version)
			a.hi = max(a.hi, min(a.hi+c.Cost, l.Capacity+l.Debt))
			s = m.pay(s, c.Key, a, 0)
		}
	}
	return s
}

// sameSnaps compares snapshots apart from roundings.
func sameSnaps(a, b []snap) bool {
	return slices.EqualFunc(a, b, func(x, y snap) bool {
		return x.Allowed == y.Allowed && x.Cost == y.Cost && x.Missing-y.Missing <= near && y.Missing-x.Missing <= near
	})
}

// upTo is the part of a cost that a bucket with there tokens pays.
func upTo(cost, there int64) int64 {
	if cost <= there {
		return cost
	}
	return min(cost, max(there-there%token, token))
}

// refund returns tokens to all accounts, and a cancellation to the account of its take. An ID counts once.
func (m *model) refund(s state, o *op) state {
	perhaps := false // an earlier refund with this ID may be remembered
	if o.ID != "" {
		if r, ok := s.get("refund " + o.ID).(remembered); ok && s.now() < r.at+horizon {
			if !r.maybe {
				return s
			}
			perhaps = true
		}
		s = s.set("refund "+o.ID, remembered{at: s.now()})
	}
	for _, c := range o.Charges {
		if m.limits[c.Version].Slots > 0 {
			held := s.slots(c.Key)
			delete(held, c.Slot)
			s = s.set("slots "+c.Key, held)
			continue
		}
		if o.Kind == refund {
			s = s.set("row "+c.Key, s.row(c.Key).returned(c.Cost, func(account) bool { return true }, func(account) bool { return perhaps }))
		} else {
			s = m.cancel(s, c, c.Cost, func(account) bool { return perhaps })
		}
	}
	return s
}

// cancel returns amount of a take to the account of its version, or less if partly is true. In debt, it may return less: see
// bucket.Limit.Cancel. It does not return the fraction of a thousandth that has refilled since the take.
func (m *model) cancel(s state, c charge, amount int64, partly func(account) bool) state {
	r := s.row(c.Key).returned(amount,
		func(a account) bool { return a.version == c.Version },
		func(a account) bool { return partly(a) || a.hi > m.limits[c.Version].Capacity })
	if i := r.find(c.Version); i >= 0 {
		r[i].fraction = true
	}
	return s.set("row "+c.Key, r)
}
