// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"math"

	"github.com/metehq/mete/bucket"
)

const always = bucket.Instant(math.MaxInt64)

// enforced records until when the active rules and overrides read each attribute.
type enforced struct {
	until []bucket.Instant // by slot; 0: never
	calm  bucket.Instant   // until then, no request is denied
}

// Enforces reports whether a rule that can deny a request at now, or an override that changes its decision,
// reads the attribute. It ignores rules that are off or in shadow, and all rules during global_shadow or
// break_glass. Rules that are enforced for a share of their keys count.
func (m *Matcher) Enforces(a Attribute, now bucket.Instant) bool {
	if now < m.enforced.calm {
		return false
	}
	for slot, until := range m.enforced.until {
		if now < until && m.attributes[slot].text == a.text {
			return true
		}
	}
	return false
}

// newEnforced collects the attributes that the rules and overrides of m read.
func newEnforced(m *Matcher) (e enforced) {
	e.until = make([]bucket.Instant, len(m.attributes))
	for _, r := range m.rules {
		if r.Mode < ModeShadow {
			e.rule(r, always)
		}
	}
	if m.exceptions == nil {
		return e
	}
	for i := range m.exceptions.whole.list {
		switch x := &m.exceptions.whole.list[i]; {
		case len(x.clauses) == 0 && x.Action.Kind().Suspends:
			e.calm = max(e.calm, x.expires)
		default:
			e.clauses(x.clauses, x.expires)
		}
	}
	for i, x := range m.exceptions.rules {
		r := m.rules[i]
		for at := range x.list {
			e.exception(&x.list[at], r)
		}
		for _, list := range x.keys {
			for _, one := range list {
				e.exception(one, r)
			}
		}
	}
	return e
}

// addException records an exception from r. An exception that blocks is active even if r is in shadow; r's key
// and match then decide whether it blocks. Other exceptions do not change a rule in shadow.
func (e *enforced) exception(x *exception, r *Rule) {
	if r.Mode == ModeOff || r.Mode == ModeShadow && x.Action != ActionBlock {
		return
	}
	e.rule(r, x.expires)
	e.clauses(x.clauses, x.expires)
	e.limits(x.limits, x.expires)
}

func (e *enforced) rule(r *Rule, until bucket.Instant) {
	e.clauses(r.clauses, until)
	for i := range r.keys {
		e.slot(r.keys[i].slot, until)
	}
	e.limits(r.Limits, until)
}

func (e *enforced) clauses(clauses []clause, until bucket.Instant) {
	for i := range clauses {
		e.slot(clauses[i].slot, until)
	}
}

func (e *enforced) limits(limits []Limit, until bucket.Instant) {
	for i := range limits {
		if c := &limits[i].cost; c.variable {
			e.slot(c.slot, until)
		}
	}
}

func (e *enforced) slot(slot int, until bucket.Instant) {
	e.until[slot] = max(e.until[slot], until)
}
