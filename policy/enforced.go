// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"math"
	"slices"
	"strings"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/requestpath"
)

const always = bucket.Instant(math.MaxInt64)

// enforced records until when the active rules and overrides read each attribute.
type enforced struct {
	until       []bucket.Instant // by slot; 0: never
	from        []int            // as in [Matcher]
	shadowUntil bucket.Instant   // until then, no request is denied

	templates []*requestpath.Template // of active rules and overrides
	tree      pathTree                // of templates
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

// EnforcesAI reports whether a rule or an override that is enforced at now depends on the tokens or the model of requests
// to language models.
func (m *Matcher) EnforcesAI(now bucket.Instant) bool {
	return slices.ContainsFunc(aiNames, func(name string) bool { return name != aiFingerprint && m.Enforces(aiAttribute(name), now) })
}

func newEnforced(m *Matcher) (e enforced) {
	e.until, e.from = make([]bucket.Instant, len(m.attributes)), m.from
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
		case matchesAll(x.alternatives) && x.Action.Kind().Suspends:
			e.shadowUntil = max(e.shadowUntil, x.expires)
		default:
			e.addClauses(x.alternatives, x.expires)
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
	e.addClauses(x.alternatives, x.expires)
	e.addLimits(x.limits, x.expires)
}

func (e *enforced) addRule(r *Rule, until bucket.Instant) {
	e.addClauses(r.alternatives, until)
	for i := range r.keys {
		e.addSlot(r.keys[i].slot, until)
	}
	e.addLimits(r.Limits, until)
}

func (e *enforced) addClauses(alternatives [][]clause, until bucket.Instant) {
	for _, clauses := range alternatives {
		for i := range clauses {
			e.addSlot(clauses[i].slot, until)
			for _, t := range clauses[i].templates {
				e.tree.add(t, int32(len(e.templates)))
				e.templates = append(e.templates, t)
			}
		}
	}
}

// matchesAll reports whether one of the alternatives matches all requests.
func matchesAll(alternatives [][]clause) bool {
	return len(alternatives) == 0 || slices.ContainsFunc(alternatives, func(clauses []clause) bool { return len(clauses) == 0 })
}

// Distinguishes reports whether a template of an enforced rule or override matches only one of two readings of a path,
// or captures different texts. In unsplit, "\" stands for a slash within a segment. Servers differ in whether an
// escaped slash ends a segment.
func (m *Matcher) Distinguishes(path, unsplit string) bool {
	one, other := m.enforced.tree.find(nil, path), m.enforced.tree.find(nil, unsplit)
	slices.Sort(one)
	if slices.Sort(other); !slices.Equal(one, other) {
		return true
	}
	return slices.ContainsFunc(one, func(i int32) bool {
		t := m.enforced.templates[i]
		return slices.ContainsFunc(t.Segments(), func(s requestpath.Segment) bool {
			a, _ := t.Capture(path, s.Text)
			b, _ := t.Capture(unsplit, s.Text)
			return s.Kind != requestpath.SegmentLiteral && a != strings.ReplaceAll(b, `\`, "/")
		})
	})
}

func (e *enforced) addLimits(limits []Limit, until bucket.Instant) {
	for i := range limits {
		c := &limits[i].cost
		if c.variable {
			e.addSlot(c.slot, until)
		}
		if c.ai == nil {
			continue
		}
		for _, slot := range [...]int{c.ai.hint, c.ai.estimate, c.ai.maxTokens, c.ai.choices, c.ai.model} {
			if slot >= 0 {
				e.addSlot(slot, until)
			}
		}
	}
}

func (e *enforced) addSlot(slot int, until bucket.Instant) {
	e.until[slot] = max(e.until[slot], until)
	if from := e.from[slot]; from > 0 {
		e.addSlot(from-1, until)
	}
}
