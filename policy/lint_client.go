// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// longQueue is how long a client of a leaky bucket hardly waits: most time out before.
const longQueue = time.Minute

// queues finds leaky buckets in which the last request waits for minutes, and limits
// that hold nothing.
func (l *linter) queues() {
	for _, d := range l.drafts {
		for i := range d.Limits {
			limit := &d.Limits[i]
			if limit.Bucket.Capacity() == 0 && !limit.Bucket.Queued() {
				l.warn(d.ofLimit(i).Field("burst"), "reservations-only", fmt.Sprintf("limit %q holds no token: it admits only requests with max_wait, and front doors send none", limit.Name),
					"use leaky_bucket where front doors should delay requests")
			}
			if !limit.Bucket.Queued() {
				continue
			}
			if wait := limit.Bucket.TimeFor(limit.Bucket.MaxReserved()); wait > longQueue {
				l.warn(d.ofLimit(i).Field("queue"), "long-queue", fmt.Sprintf("the last request in the queue of limit %q waits for %s", limit.Name, short(wait.Round(time.Second))),
					`say how long clients wait, as in queue: "10s"`)
			}
		}
	}
}

// madeUp finds rules whose only keys are credentials of clients, where no other rule
// counts the same requests by something that clients cannot make up.
func (l *linter) madeUp() {
	for _, d := range l.rules {
		if l.looks > maxLintLooks {
			return
		}
		if len(d.LimitKeys) == 0 || d.fallback || slices.ContainsFunc(d.LimitKeys, func(a Attribute) bool { return !clientWritten(a) }) {
			continue
		}
		if slices.ContainsFunc(d.clauses, func(c clause) bool { return !c.negate && l.matcher.attributes[c.slot].Source == JWT }) {
			continue // the token is verified
		}
		i := slices.IndexFunc(d.LimitKeys, func(a Attribute) bool { return secret(a) && l.endless(d, a) })
		n := d.at.Field("limit_keys")
		if i < 0 || n == nil {
			continue
		}
		bounded := slices.ContainsFunc(l.rules, func(e *draft) bool {
			return l.look() && e.Mode == Enforce && e.group != d.group && !slices.ContainsFunc(e.LimitKeys, clientWritten) && l.catches(e, d.takes)
		})
		if l.looks <= maxLintLooks && !bounded {
			l.warn(n.List[i], "unverified-key", fmt.Sprintf("mete does not verify %v: with a new value comes a new, full bucket, and no other rule counts these requests", d.LimitKeys[i]),
				"add a rule by ip:address for all requests, in a group of its own, or use a claim of a verified token (jwt:sub)")
		}
	}
}

// hiddenTiers finds rules on what requests ask for that stand behind a broader tier: it
// takes some of their requests, and allows more.
func (l *linter) hiddenTiers() {
	for _, d := range l.rules {
		if !l.aboutTargets(d) {
			continue
		}
		for _, e := range l.groups[d.group] {
			if e == d || !l.look() {
				break
			}
			if e.Mode != Enforce || strictest(d, e) == nil || strictest(e, d) != nil {
				continue
			}
			if l.looks += e.takes.weight() + d.takes.weight(); l.apart(d.takes, e.takes) || l.within(e.takes, d.takes) || !l.narrows(d, e) {
				continue
			}
			both := slices.Clone(d.takes)
			for _, s := range e.takes {
				both = both.with(s.slot, l.side(both, s.slot).and(s.set))
			}
			l.warn(d.at, "hidden-tier", fmt.Sprintf("rule %q takes some requests of the stricter rule %q, for example %s: the first tier that matches counts", e.Name, d.Name, l.facts(both)),
				fmt.Sprintf("put %q first, or give it a group of its own so that both apply", d.Name))
			break
		}
	}
}

// aboutTargets reports whether d has a clause of its own on what a request asks for.
func (l *linter) aboutTargets(d *draft) bool {
	return slices.ContainsFunc(d.clauses[d.selected:], func(c clause) bool { return l.target(c.slot) })
}

func (l *linter) target(slot int) bool {
	s := l.matcher.attributes[slot].Source
	return s == Path || s == Method || s == Host
}

// narrows reports whether d lets in less than e of what requests ask for.
func (l *linter) narrows(d, e *draft) bool {
	return slices.ContainsFunc(d.takes, func(s side) bool { return l.target(s.slot) && !l.side(e.takes, s.slot).within(s.set) })
}

// clientTiers finds tiers that a client reaches by what it writes, where it would else
// fall under a stricter one.
func (l *linter) clientTiers() {
	for _, e := range l.rules {
		i := slices.IndexFunc(e.clauses, func(c clause) bool {
			a := l.matcher.attributes[c.slot]
			return !c.negate && clientWritten(a) && !secret(a) && !slices.Contains(e.LimitKeys, a)
		})
		if i < 0 || slices.ContainsFunc(e.clauses, func(c clause) bool { return l.proves(&c) }) {
			continue
		}
		group := l.groups[e.group]
		for _, d := range group[slices.Index(group, e)+1:] {
			if !l.look() {
				return
			}
			if strictest(d, e) == nil || strictest(e, d) != nil {
				continue
			}
			if without := e.takes.with(e.clauses[i].slot, everything(l.matcher.attributes[e.clauses[i].slot])); !l.apart(d.takes, without) {
				l.warn(e.at, "client-tier", fmt.Sprintf("clients can write %v, and with it choose rule %q, which allows more than %q", l.matcher.attributes[e.clauses[i].slot], e.Name, d.Name),
					"use a claim of a verified token, or let the proxy in front set or remove it")
				break
			}
		}
	}
}

// proves reports whether a clause holds only for what clients cannot make up: a claim, an
// address or a secret.
func (l *linter) proves(c *clause) bool {
	a := l.matcher.attributes[c.slot]
	return !c.negate && !slices.Contains(c.prefixes, "") && (!clientWritten(a) && !l.target(c.slot) || secret(a))
}

// clientAllows finds overrides that lift limits for whoever writes something.
func (l *linter) clientAllows() {
	if l.top == nil || l.top.Field("overrides") == nil {
		return
	}
	for _, n := range l.top.Field("overrides").List {
		action, match := n.Field("action"), n.Field("match")
		if action == nil || action.Text != string(Allow) || match == nil {
			continue
		}
		d := &draft{Rule: &Rule{}, at: match}
		if !l.match(d, match) || slices.ContainsFunc(d.clauses, func(c clause) bool { return l.proves(&c) }) {
			continue
		}
		i := slices.IndexFunc(d.clauses, func(c clause) bool { return !c.negate && clientWritten(l.matcher.attributes[c.slot]) })
		if i >= 0 {
			l.warn(match, "client-allow", fmt.Sprintf("whoever writes %v has no limit", l.matcher.attributes[d.clauses[i].slot]),
				"match a claim, an address or a secret, too")
		}
	}
}

// twins finds rules that clients leave by another spelling of the same request: HEAD for
// GET, and a path with or without a slash at its end.
func (l *linter) twins() {
	type selector struct{ scope, slot int }
	told := map[selector]bool{} // once for all rules of a policy
	for _, d := range l.rules {
		for i := range d.clauses {
			c := &d.clauses[i]
			key := selector{d.scope, c.slot}
			if l.looks > maxLintLooks {
				return
			}
			if c.negate || i < d.selected && told[key] {
				continue
			}
			value, twin := l.twin(d, c)
			switch a := l.matcher.attributes[c.slot]; {
			case twin == "" || l.looks > maxLintLooks:
				continue
			case a.Source == Method:
				l.warn(d.at, "head-bypass", fmt.Sprintf("rule %q is about GET and not about HEAD, which most servers answer alike", d.Name), "name both: [GET, HEAD]")
			default:
				l.warn(d.at, "slash-bypass", fmt.Sprintf("rule %q is about %s and not about %s, which many frameworks answer alike", d.Name, value, twin),
					fmt.Sprintf("name both: [%s, %s]", value, twin))
			}
			told[key] = told[key] || i < d.selected
		}
	}
}

// twin returns a value that c lets in, and one that c does not though servers treat it
// alike, where no other rule is as strict with it. The latter is "" for none.
func (l *linter) twin(d *draft, c *clause) (value, twin string) {
	switch l.matcher.attributes[c.slot].Source {
	case Method:
		if slices.Contains(c.exact, "GET") && l.missed(d, c, "HEAD") {
			return "GET", "HEAD"
		}
	case Path:
		for _, path := range c.exact {
			twin, cut := strings.CutSuffix(path, "/")
			if !cut {
				twin += "/"
			}
			if path == "/" || strings.Contains(path[strings.LastIndexByte(strings.TrimSuffix(path, "/"), '/'):], ".") {
				continue // a file
			}
			if l.missed(d, c, twin) || l.looks > maxLintLooks {
				return path, twin
			}
		}
	}
	return "", ""
}

// missed reports whether the clause c of d leaves a value out, and no rule is as strict
// with such requests as d.
func (l *linter) missed(d *draft, c *clause, value string) bool {
	if c.holds(&fact{present: true, value: value}) {
		return false
	}
	outside := d.takes.with(c.slot, oneString(value))
	return !slices.ContainsFunc(l.rules, func(e *draft) bool {
		return l.look() && e != d && e.Mode <= d.Mode && strictest(e, d) != nil && l.catches(e, outside)
	})
}
