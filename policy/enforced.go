// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"math"

	"github.com/metehq/mete/bucket"
)

const always = bucket.Instant(math.MaxInt64)

// enforced records until when the active rules and overrides read each attribute.
type enforced struct {
	until       []bucket.Instant // by slot; 0: never
	shadowUntil bucket.Instant   // until then, no request is denied
}

// Enforces reports whether a rule that can deny a request at now, or an override that changes its decision, reads
// the attribute. It ignores rules that are off or in shadow, and all rules during global_shadow or break_glass.
// Rules that are enforced for a share of their keys count.
func (m *Matcher) Enforces(a Attribute, now bucket.Instant) bool {
	if now < m.enforced.shadowUntil {
		return false
	}
	for slot, until := range m.enforced.until {
		if now < until && m.attributes[slot].text == a.text {
			return true
		}
	}
	return false
}

func newEnforced(m *Matcher) (e enforced) {
	e.until = make([]bucket.Instant, len(m.attributes))
	for _, r := range m.rules {
		if r.Mode < ModeShadow {
			e.addRule(r, always)
		}
	}
	if m.exceptions == nil {
		return e
	}
	for i := range m.exceptions.whole.list {
		switch x := &m.exceptions.whole.list[i]; {
		case len(x.clauses) == 0 && x.Action.Kind().Suspends:
			e.shadowUntil = max(e.shadowUntil, x.expires)
		default:
			e.addClauses(x.clauses, x.expires)
		}
	}
	for i, x := range m.exceptions.rules {
		r := m.rules[i]
		for at := range x.list {
			e.addException(&x.list[at], r)
		}
		for _, list := range x.keys {
			for _, one := range list {
				e.addException(one, r)
			}
		}
	}
	return e
}

// addException records an exception from r. An exception that blocks is active even if r is in shadow; r's key and
// match then decide whether it blocks. Other exceptions do not change a rule in shadow.
func (e *enforced) addException(x *exception, r *Rule) {
	if r.Mode == ModeOff || r.Mode == ModeShadow && x.Action != ActionBlock {
		return
	}
	e.addRule(r, x.expires)
	e.addClauses(x.clauses, x.expires)
	e.addLimits(x.limits, x.expires)
}

func (e *enforced) addRule(r *Rule, until bucket.Instant) {
	e.addClauses(r.clauses, until)
	for i := range r.keys {
		e.addSlot(r.keys[i].slot, until)
	}
	e.addLimits(r.Limits, until)
}

func (e *enforced) addClauses(clauses []clause, until bucket.Instant) {
	for i := range clauses {
		e.addSlot(clauses[i].slot, until)
	}
}

func (e *enforced) addLimits(limits []Limit, until bucket.Instant) {
	for i := range limits {
		if c := &limits[i].cost; c.variable {
			e.addSlot(c.slot, until)
		}
	}
}

func (e *enforced) addSlot(slot int, until bucket.Instant) {
	e.until[slot] = max(e.until[slot], until)
}
