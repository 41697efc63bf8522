// SPDX-License-Identifier: Apache-2.0

package history_test

import "slices"

// hold takes, and keeps a record. A repeated hold gets its answer again, and takes slots again that have ended.
func (m *model) hold(s state, o *op) (state, bool) {
	if h, ok := s.get("hold " + o.Hold).(record); ok && s.now() < h.until {
		if o.Answer.Err == errEnded { // without an answer to repeat
			return s, m.status(s, h) != "open"
		}
		missing := &op{Kind: take, Charges: h.slots, Answer: answer{Unknown: true}}
		held := !slices.ContainsFunc(h.slots, func(c charge) bool { _, ok := s.slots(c.Key)[c.Slot]; return !ok })
		if held {
			return s, o.Answer.Unknown || o.Answer.Allowed && (h.snaps == nil || sameSnaps(o.Answer.Snaps, h.snaps))
		}
		after, _, allowed, _ := m.decide(s, missing, take)
		return after, o.Answer.Unknown || o.Answer.Allowed == allowed
	}
	after, snaps, allowed, ok := m.decide(s, o, take)
	if !allowed || !ok {
		return after, ok && o.Answer.Err != errEnded
	}
	h := record{snaps: snaps, expires: s.now() + o.TTL, until: s.now() + o.TTL + horizon, refund: o.Refund, status: "open"}
	for _, c := range o.Charges {
		if m.limits[c.Version].Slots > 0 {
			h.slots = append(h.slots, c)
			continue
		}
		h.parts = append(h.parts, part{charge: c})
	}
	return after.set("hold "+o.Hold, h), true
}

func (m *model) status(s state, h record) string {
	if h.status == "open" && s.now() >= h.expires {
		return "expired"
	}
	return h.status
}

// settle ends or renews a hold. A settlement with an excess above a limit's debt changes nothing.
func (m *model) settle(s state, o *op) (state, bool) {
	h, ok := s.get("hold " + o.Hold).(record)
	if !ok || s.now() >= h.until {
		return s, o.Answer.Unknown || o.Answer.Status == "unknown"
	}
	before, after, fits := m.status(s, h), s, true
	settled := before == "open" && o.Kind == settle
	for _, p := range h.parts {
		target := p.Cost
		if !p.Kept {
			target = p.Fixed + o.Amount
		}
		if !settled {
			break
		}
		switch {
		case target < p.Cost:
			after = m.endPart(after, p, p.Cost-target)
		case target > p.Cost:
			a, _ := m.accountFor(s.row(p.Key), p.Version)
			a.lo, a.hi = a.lo+target-p.Cost, a.hi+target-p.Cost
			fits = fits && a.hi <= m.limits[p.Version].Capacity+m.limits[p.Version].Debt
			after = m.pay(after, p.Key, a, target-p.Cost)
		}
	}
	if settled = settled && fits; settled {
		h.status, h.actual, h.parts = "settled", o.Amount, nil
		h.until = max(h.expires, s.now()) + horizon
	} else {
		after = s
	}
	if before == "open" && o.Kind == renewHold {
		h.expires, h.until = s.now()+o.TTL, s.now()+o.TTL+horizon
	}
	a := &o.Answer
	same := a.Unknown || a.Status == m.status(s, h) && a.Settled == settled && (a.Status != "settled" || a.Actual == h.actual)
	return after.set("hold "+o.Hold, h), same
}

// endPart returns tokens of a hold, unless its bucket was reset or its account was dropped since.
func (m *model) endPart(s state, p part, amount int64) state {
	if p.over || s.row(p.Key).find(p.Version) < 0 {
		return s
	}
	return m.cancel(s, p.charge, amount, func(account) bool { return p.unsure })
}

// expire refunds expired holds, if they were made so.
func (m *model) expire(s state) state {
	for _, t := range s.things {
		h, ok := t.value.(record)
		if !ok || !h.refund || m.status(s, h) != "expired" {
			continue
		}
		h.parts = slices.Clone(h.parts)
		for i := range h.parts {
			p := &h.parts[i]
			if p.Fixed < p.Cost && !p.Kept && !p.over {
				s = m.endPart(s, *p, p.Cost-p.Fixed)
			}
			p.over = true
		}
		s = s.set(t.name, h)
	}
	return s
}
