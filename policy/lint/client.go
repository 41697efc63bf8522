// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/metehq/mete/internal/requestpath"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policy/internal/inspect"
	"github.com/metehq/mete/policy/internal/space"
)

const longQueue = time.Minute

// checkQueues finds leaky buckets with waits of minutes, and limits without capacity.
func (l *linter) checkQueues() {
	for _, d := range l.all {
		for i := range d.view.Limits {
			limit, at := d.limit(i)
			if limit.Bucket.Capacity() == 0 && !limit.Bucket.Queued() {
				l.warn(at.Fields+"/burst", "reservations-only", fmt.Sprintf("limit %q has a burst of 0: it admits only requests with max_wait, which the gateway and the middleware never send", limit.Name),
					"use leaky_bucket to delay requests in the gateway or the middleware")
			}
			if !limit.Bucket.Queued() {
				continue
			}
			if wait := limit.Bucket.TimeFor(limit.Bucket.MaxReserved()); wait > longQueue {
				l.warn(at.Fields+"/queue", "long-queue", fmt.Sprintf("the last request in the queue of limit %q waits for %s", limit.Name, inspect.FormatDuration(wait.Round(time.Second))),
					`set the longest wait, as in queue: "10s"`)
			}
		}
	}
}

// checkUnverifiedKeys finds rules with only client credentials in their keys, if no other rule counts the requests
// by an attribute that clients cannot make up.
func (l *linter) checkUnverifiedKeys() {
	for _, d := range l.rules {
		if l.looks > maxLintLooks {
			return
		}
		if len(d.LimitKeys) == 0 || d.Fallback || slices.ContainsFunc(d.LimitKeys, func(a policy.Attribute) bool { return !clientWritten(a) }) {
			continue
		}
		if slices.ContainsFunc(d.Clauses, func(c inspect.Clause) bool { return !c.Negate && l.attributes[c.Slot].Source == policy.SourceJWT }) {
			continue // the token is verified
		}
		i := slices.IndexFunc(d.LimitKeys, func(a policy.Attribute) bool { return a.IsSecret() && l.isUnbounded(d, a) })
		if i < 0 {
			continue
		}
		bounded := slices.ContainsFunc(l.rules, func(e *rule) bool {
			return l.countLook() && e.Mode == policy.ModeEnforce && !e.Timed && e.Group != d.Group && !slices.ContainsFunc(e.LimitKeys, clientWritten) && l.catches(e, d.Takes)
		})
		if l.looks <= maxLintLooks && !bounded {
			l.warn(d.keyPath(i), "unverified-key", fmt.Sprintf("mete does not verify %v: each new value gets a new, full bucket, and no other rule counts these requests", d.LimitKeys[i]),
				"add a rule by ip:address for all requests, in its own group, or use a claim of a verified token (jwt:sub)")
		}
	}
}

// checkHiddenTiers finds rules on paths, methods or hosts behind a broader tier that takes some of their requests
// and allows more.
func (l *linter) checkHiddenTiers() {
	for _, d := range l.rules {
		if !l.matchesTarget(d) {
			continue
		}
		for _, e := range l.groups[d.Group] {
			if e == d || !l.countLook() {
				break
			}
			if e.Mode != policy.ModeEnforce || e.Timed || d.Timed || findStrictest(d, e) == nil || findStrictest(e, d) != nil {
				continue
			}
			if l.looks += e.Takes.Weight() + d.Takes.Weight(); l.space.Apart(d.Takes, e.Takes) || l.space.Within(e.Takes, d.Takes) || !l.narrows(d, e) {
				continue
			}
			both := slices.Clone(d.Takes)
			for _, s := range e.Takes {
				both = both.With(s.Slot, l.space.Side(both, s.Slot).And(s.Set))
			}
			l.warn(d.Path, "hidden-tier", fmt.Sprintf("rule %q takes some requests of the stricter rule %q, for example %s: the first tier that matches applies", e.Name, d.Name, l.space.Facts(both)),
				fmt.Sprintf("put %q first, or give it its own group so that both apply", d.Name))
			break
		}
	}
}

func (l *linter) matchesTarget(d *rule) bool {
	return slices.ContainsFunc(d.Clauses[d.Selected:], func(c inspect.Clause) bool { return l.isTarget(c.Slot) })
}

func (l *linter) isTarget(slot int) bool {
	s := l.attributes[slot].Source
	return s == policy.SourcePath || s == policy.SourceMethod || s == policy.SourceHost
}

func (l *linter) narrows(d, e *rule) bool {
	return slices.ContainsFunc(d.Takes, func(s space.Side) bool { return l.isTarget(s.Slot) && !l.space.Side(e.Takes, s.Slot).Within(s.Set) })
}

// checkClientTiers finds tiers that a client can choose with a header, query parameter or cookie, instead of a
// stricter tier.
func (l *linter) checkClientTiers() {
	for _, e := range l.rules {
		i := slices.IndexFunc(e.Clauses, func(c inspect.Clause) bool {
			a := l.attributes[c.Slot]
			return !c.Negate && clientWritten(a) && !a.IsSecret() && !slices.Contains(e.LimitKeys, a)
		})
		if i < 0 || slices.ContainsFunc(e.Clauses, func(c inspect.Clause) bool { return l.proves(&c) }) {
			continue
		}
		group := l.groups[e.Group]
		for _, d := range group[slices.Index(group, e)+1:] {
			if !l.countLook() {
				return
			}
			if findStrictest(d, e) == nil || findStrictest(e, d) != nil {
				continue
			}
			if without := e.Takes.With(e.Clauses[i].Slot, l.space.Everything(e.Clauses[i].Slot)); !l.space.Apart(d.Takes, without) {
				l.warn(e.Path, "client-tier", fmt.Sprintf("clients can send %v and choose rule %q with it, which allows more than %q", l.attributes[e.Clauses[i].Slot], e.Name, d.Name),
					"use a claim of a verified token, or let your proxy set or remove it")
				break
			}
		}
	}
}

// proves reports whether clients cannot make up the values of c: a claim, an address or a secret.
func (l *linter) proves(c *inspect.Clause) bool {
	a := l.attributes[c.Slot]
	return !c.Negate && !slices.Contains(c.Prefixes, "") && (!clientWritten(a) && !l.isTarget(c.Slot) || a.IsSecret())
}

// checkClientAllows finds overrides that lift limits for any client that sends an attribute.
func (l *linter) checkClientAllows() {
	for _, o := range l.overrides {
		for _, clauses := range o.Match {
			if o.Action != string(policy.ActionAllow) || slices.ContainsFunc(clauses, func(c inspect.Clause) bool { return l.proves(&c) }) {
				continue
			}
			i := slices.IndexFunc(clauses, func(c inspect.Clause) bool { return !c.Negate && clientWritten(l.attributes[c.Slot]) })
			if i >= 0 {
				l.warn(o.Path+"/match", "client-allow", fmt.Sprintf("any client that sends %v has no limit", l.attributes[clauses[i].Slot]),
					"also match a claim, an address or a secret")
				break
			}
		}
	}
}

// checkSpellings finds rules that clients evade with another spelling of the same request: HEAD for GET, and a path
// with or without a trailing slash.
func (l *linter) checkSpellings() {
	type selector struct{ scope, slot int }
	reported := map[selector]bool{} // once for all rules of a policy
	for _, d := range l.rules {
		for i := range d.Clauses {
			c := &d.Clauses[i]
			key := selector{d.Scope, c.Slot}
			if l.looks > maxLintLooks {
				return
			}
			if c.Negate || i < d.Selected && reported[key] {
				continue
			}
			value, twin := l.findTwin(d, c)
			switch a := l.attributes[c.Slot]; {
			case twin == "" || l.looks > maxLintLooks:
				continue
			case a.Source == policy.SourceMethod:
				l.warn(d.Path, "head-bypass", fmt.Sprintf("rule %q matches GET but not HEAD, although most servers answer both alike", d.Name), "match both: [GET, HEAD]")
			default:
				l.warn(d.Path, "slash-bypass", fmt.Sprintf("rule %q matches %s but not %s, although many frameworks answer both alike", d.Name, value, twin),
					fmt.Sprintf("match both: [%s, %s]", value, twin))
			}
			reported[key] = reported[key] || i < d.Selected
		}
	}
}

// findTwin returns a value that c accepts, and an equivalent value that c and all rules as strict miss. twin is ""
// if there is none.
func (l *linter) findTwin(d *rule, c *inspect.Clause) (value, twin string) {
	switch l.attributes[c.Slot].Source {
	case policy.SourceMethod:
		if slices.Contains(c.Exact, "GET") && l.misses(d, c, "HEAD") {
			return "GET", "HEAD"
		}
	case policy.SourcePath:
		if l.attributes[c.Slot].IsCaptured() {
			return "", ""
		}
		for _, t := range c.Templates {
			path, ok := space.WithTemplate(t).Sample(false)
			if last := t.Segments()[len(t.Segments())-1]; !ok || last.Kind == requestpath.SegmentRest || last.Text == "" || strings.Contains(last.Text, ".") {
				continue
			}
			if l.misses(d, c, path+"/") || l.looks > maxLintLooks {
				return t.String(), t.String() + "/{$}"
			}
		}
		for _, path := range c.Exact {
			twin, cut := strings.CutSuffix(path, "/")
			if !cut {
				twin += "/"
			}
			if path == "/" || strings.Contains(path[strings.LastIndexByte(strings.TrimSuffix(path, "/"), '/'):], ".") {
				continue // a file
			}
			if l.misses(d, c, twin) || l.looks > maxLintLooks {
				return path, twin
			}
		}
	}
	return "", ""
}

// misses reports whether the clause c of d excludes a value, and no rule is as strict as d with such requests.
func (l *linter) misses(d *rule, c *inspect.Clause, value string) bool {
	if c.Set.Has(value) {
		return false
	}
	outside := d.Takes.With(c.Slot, space.One(value))
	return !slices.ContainsFunc(l.rules, func(e *rule) bool {
		return l.countLook() && e != d && e.Mode <= d.Mode && findStrictest(e, d) != nil && l.catches(e, outside)
	})
}
