// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"

	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policy/internal/inspect"
	"github.com/metehq/mete/policy/internal/space"
)

// checkContradictions finds limits of a rule that are never reached because of another limit of the rule.
func (l *linter) checkContradictions() {
	for _, d := range l.all {
		for i := range d.view.Limits {
			y, at := d.limit(i)
			for j := range d.view.Limits {
				x, _ := d.limit(j)
				if i == j || !stricter(x, y) || j > i && stricter(y, x) {
					continue
				}
				l.warn(at.Path, "contradictory-rates", fmt.Sprintf("limit %q is never reached: %q allows no more than %s", y.Name, x.Name, allowance(x, y)),
					"lower it below the other limit, or remove it")
				break
			}
		}
	}
}

// checkOverlaps finds rules with limits that are never reached, because a rule of another group counts the same
// requests and allows less.
func (l *linter) checkOverlaps() {
	if len(l.groups) < 2 {
		return
	}
	boxes, weight := make([]space.Box, len(l.rules)), 0
	for i, d := range l.rules {
		boxes[i] = d.Takes
		weight += d.Takes.Weight()
	}
	if weight > maxLintWeight {
		return
	}
	near := space.NewIndex(boxes)
	for i, y := range l.rules {
		for _, j := range near.Around(i) {
			x := l.rules[j]
			if x.Group == y.Group || x.Mode != policy.ModeEnforce || x.Timed || x.Fallback || y.Fallback || x.Missing == inspect.MissingDeny && y.Missing != inspect.MissingDeny {
				continue
			}
			if !l.countLook() {
				return
			}
			by := findStrictest(x, y)
			if by == nil || !coarser(x, y) {
				continue
			}
			if l.looks += x.Takes.Weight(); !l.space.Within(y.Takes, x.Takes) || l.isPreempted(x, y) || j > int32(i) && l.isMutual(x, y) {
				continue
			}
			l.reportOverlap(x, y, by)
			break
		}
	}
}

func (l *linter) isMutual(x, y *rule) bool {
	return findStrictest(y, x) != nil && coarser(y, x) && l.space.Within(x.Takes, y.Takes)
}

func (l *linter) reportOverlap(x, y *rule, by *policy.Limit) {
	hint := "lower it below the other limit, or remove it"
	if x.matchesAll() && !y.matchesAll() {
		hint = fmt.Sprintf("if %q is for the remaining requests, put both in one group, %[1]q last: the first that matches applies", x.Name)
		switch {
		case len(x.LimitKeys) == 0: // in one group with the others, it would not cap them
			hint = fmt.Sprintf("if %q is a cap for all requests together, raise it above %q, or lower the other limit", x.Name, y.Name)
		case x.Scope != y.Scope:
			hint = "the rules of all policies apply together: narrow a selector, or put the rules into one group of one policy"
		}
		l.warn(x.Path, "catch-all-tier", fmt.Sprintf("rule %q has no match, so it also counts the requests of rule %q, and allows less: %s", x.Name, y.Name, allowance(by, &y.Rule.Limits[0])), hint)
		return
	}
	l.warn(y.Path, "overlapping-rules", fmt.Sprintf("rule %q is never reached: rule %q counts the same requests and allows no more than %s", y.Name, x.Name, allowance(by, &y.Rule.Limits[0])), hint)
}

// findStrictest returns the limit of x that makes all limits of y redundant, or nil.
func findStrictest(x, y *rule) *policy.Limit {
	for i := range x.view.Limits {
		by, _ := x.limit(i)
		if !slices.ContainsFunc(y.Rule.Limits, func(l policy.Limit) bool { return !stricter(by, &l) }) {
			return by
		}
	}
	return nil
}

// coarser reports whether requests that share a bucket under y also share one under x.
func coarser(x, y *rule) bool {
	for _, a := range x.LimitKeys {
		if !slices.ContainsFunc(y.LimitKeys, func(b policy.Attribute) bool { return a.String() == b.String() && a.Bits <= b.Bits }) {
			return false
		}
	}
	return true
}

// isPreempted reports whether an earlier rule of x's group may take some of y's requests.
func (l *linter) isPreempted(x, y *rule) bool {
	for _, e := range l.groups[x.Group] {
		if e == x {
			return false
		}
		if !l.countLook() || !l.space.Apart(e.Takes, y.Takes) {
			return true
		}
	}
	return false
}

func (d *rule) matchesAll() bool { return len(d.Clauses) == d.Selected }

// checkCatchAlls finds rules that were probably meant for the remaining requests, but apply to all. Other
// rules of the same policy, with other limit_keys, apply to certain clients and allow more.
func (l *linter) checkCatchAlls() {
	for _, x := range l.rules {
		if !x.matchesAll() || x.Timed || x.Fallback || len(x.LimitKeys) == 0 || x.Mode != policy.ModeEnforce {
			continue
		}
		for _, y := range l.scopes[x.Scope] {
			if !l.countLook() {
				return
			}
			if y.Group == x.Group || coarser(x, y) || coarser(y, x) || !l.matchesClients(y) {
				continue
			}
			if by := findStrictest(x, y); by != nil && !l.space.Apart(x.Takes, y.Takes) && !l.isPreempted(x, y) {
				l.warn(x.Path, "catch-all-tier", fmt.Sprintf("rule %q has no match, so it also counts the requests of rule %q, and allows less: %s", x.Name, y.Name, allowance(by, &y.Rule.Limits[0])),
					"if it is for the remaining requests, add a match, or put both in one group: the first that matches applies")
				break
			}
		}
	}
}

// matchesClients reports whether d has a clause that distinguishes clients, such as their plan.
func (l *linter) matchesClients(d *rule) bool {
	return slices.ContainsFunc(d.Clauses, func(c inspect.Clause) bool {
		a := l.attributes[c.Slot]
		return !c.Negate && (a.Source == policy.SourceJWT || a.Source == policy.SourceHeader || a.Source == policy.SourceCustom)
	})
}
