// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
)

// contradictions finds limits of one rule of which another leaves nothing to do.
func (l *linter) contradictions() {
	for _, d := range l.drafts {
		for i := range d.Limits {
			for j := range d.Limits {
				x, y := &d.Limits[j], &d.Limits[i]
				if i == j || !stricter(x, y) || j > i && stricter(y, x) {
					continue
				}
				l.warn(d.limitNode(i), "contradictory-rates", fmt.Sprintf("limit %q is never reached: %q allows no more than %s", y.Name, x.Name, allowance(x, y)),
					"lower it below the other, or remove it")
				break
			}
		}
	}
}

// overlaps finds rules whose limits are never reached because a rule of another
// group, which counts the same requests and perhaps others, allows less.
func (l *linter) overlaps() {
	if len(l.groups) < 2 {
		return
	}
	boxes, weight := make([]box, len(l.rules)), 0
	for i, d := range l.rules {
		boxes[i] = d.takes
		weight += d.takes.weight()
	}
	if weight > maxLintWeight {
		return
	}
	near := newOverlap(boxes)
	for i, y := range l.rules {
		for _, j := range near.around(i) {
			x := l.rules[j]
			if x.group == y.group || x.Mode != Enforce || x.fallback || y.fallback || x.onMissing == missingDeny && y.onMissing != missingDeny {
				continue
			}
			if !l.look() {
				return
			}
			by := strictest(x, y)
			if by == nil || !coarser(x, y) {
				continue
			}
			if l.looks += x.takes.weight(); !l.within(y.takes, x.takes) || l.preempted(x, y) || j > int32(i) && l.mutual(x, y) {
				continue
			}
			l.overlapping(x, y, by)
			break
		}
	}
}

// mutual reports whether each of two rules leaves the other nothing to do.
func (l *linter) mutual(x, y *draft) bool {
	return strictest(y, x) != nil && coarser(y, x) && l.within(x.takes, y.takes)
}

// overlapping reports that y's limits are never reached because of x's.
func (l *linter) overlapping(x, y *draft, by *Limit) {
	hint := "lower it below the other, or remove it"
	if x.forAll() && !y.forAll() {
		hint = fmt.Sprintf("if %q is for the others, put both in one group, %[1]q last: the first that matches counts", x.Name)
		switch {
		case len(x.LimitKeys) == 0: // in one group with the others it would be no cap
			hint = fmt.Sprintf("if %q is a cap for all requests together, raise it above %q, or lower the other", x.Name, y.Name)
		case x.scope != y.scope:
			hint = "the rules of all policies apply together: narrow one's selector, or put the rules into one policy and one group"
		}
		l.warn(x.at, "catch-all-tier", fmt.Sprintf("rule %q has no match, so it counts the requests of rule %q, too, and allows less: %s", x.Name, y.Name, allowance(by, &y.Limits[0])), hint)
		return
	}
	l.warn(y.at, "overlapping-rules", fmt.Sprintf("rule %q is never reached: rule %q counts the same requests and allows no more than %s", y.Name, x.Name, allowance(by, &y.Limits[0])), hint)
}

// strictest returns the limit of x that leaves all of y's nothing to do, nil for
// none.
func strictest(x, y *draft) *Limit {
	for i := range x.Limits {
		if !slices.ContainsFunc(y.Limits, func(l Limit) bool { return !stricter(&x.Limits[i], &l) }) {
			return &x.Limits[i]
		}
	}
	return nil
}

// coarser reports whether requests that share a bucket under y do so under x.
func coarser(x, y *draft) bool {
	for _, a := range x.LimitKeys {
		if !slices.ContainsFunc(y.LimitKeys, func(b Attribute) bool { return a.text == b.text && a.Bits <= b.Bits }) {
			return false
		}
	}
	return true
}

// preempted reports whether an earlier rule of x's group may take some of y's
// requests.
func (l *linter) preempted(x, y *draft) bool {
	for _, e := range l.groups[x.group] {
		if e == x {
			return false
		}
		if !l.look() || !l.apart(e.takes, y.takes) {
			return true
		}
	}
	return false
}

// forAll reports whether d has no match of its own.
func (d *draft) forAll() bool {
	own := d.at.Field("match")
	return own == nil || len(own.Fields) == 0
}

// catchAlls finds rules for the others that are for all: beside rules of the same
// policy that are about some clients, with other limit_keys and allowing less.
func (l *linter) catchAlls() {
	for _, x := range l.rules {
		if !x.forAll() || x.fallback || len(x.LimitKeys) == 0 || x.Mode != Enforce {
			continue
		}
		for _, y := range l.scopes[x.scope] {
			if !l.look() {
				return
			}
			if y.group == x.group || coarser(x, y) || coarser(y, x) || !l.aboutClients(y) {
				continue
			}
			if by := strictest(x, y); by != nil && !l.apart(x.takes, y.takes) && !l.preempted(x, y) {
				l.warn(x.at, "catch-all-tier", fmt.Sprintf("rule %q has no match, so it counts the requests of rule %q, too, and allows less: %s", x.Name, y.Name, allowance(by, &y.Limits[0])),
					"if it is for the others, say so in a match, or put both in one group: the first that matches counts")
				break
			}
		}
	}
}

// aboutClients reports whether d has a clause that tells clients apart, such as
// their plan: not what they ask for.
func (l *linter) aboutClients(d *draft) bool {
	return slices.ContainsFunc(d.clauses, func(c clause) bool {
		a := l.matcher.attributes[c.slot]
		return !c.negate && (a.Source == JWT || a.Source == Header || a.Source == Custom)
	})
}
