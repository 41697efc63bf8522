// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"math"

	"github.com/metehq/mete/bucket"
)

// always is later than any time.
const always = bucket.Instant(math.MaxInt64)

// enforced says until when what is in force reads each attribute.
type enforced struct {
	until []bucket.Instant // by slot; 0: never
	calm  bucket.Instant   // until then, nothing denies any request
}

// Enforces reports whether a rule that can deny a request at now reads the attribute,
// or an override that changes its answer does. Rules that are off or in shadow do not
// count, nor does any rule while all of them are in shadow or nothing is decided
// (global_shadow, break_glass). Rules that are in force for a part of their keys count.
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

// newEnforced finds what the rules and the overrides of m read.
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

// exception notes an exception from r. One that blocks is in force even where r is in
// shadow, and r's key and match then decide whether it blocks. Others change nothing of
// a rule in shadow.
func (e *enforced) exception(x *exception, r *Rule) {
	if r.Mode == ModeOff || r.Mode == ModeShadow && x.Action != ActionBlock {
		return
	}
	e.rule(r, x.expires)
	e.clauses(x.clauses, x.expires)
	e.limits(x.limits, x.expires)
}

// rule notes what r reads.
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
