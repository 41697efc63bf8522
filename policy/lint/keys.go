// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"

	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policy/internal/inspect"
	"github.com/metehq/mete/policy/internal/space"
)

// forwarded are the headers in which proxies report the client's address. Clients can send them, too.
var forwarded = []string{"x-forwarded-for", "forwarded", "x-real-ip", "x-client-ip", "client-ip", "true-client-ip", "cf-connecting-ip",
	"x-cluster-client-ip", "fastly-client-ip", "x-originating-ip", "x-remote-ip", "x-remote-addr"}

func (l *linter) checkKeys() {
	for _, d := range l.all {
		if d.Mode == policy.ModeOff {
			continue
		}
		for i, a := range d.LimitKeys {
			at := d.keyPath(i)
			switch {
			case a.Source == policy.SourceHeader && slices.Contains(forwarded, a.Name):
				l.warn(at, "spoofable-key", fmt.Sprintf("a client can send a new %v with every request to get a new bucket", a),
					"use ip:address, and configure the trusted proxies of the server")
			case a.Source == policy.SourceHeader && a.Name == "user-agent":
				l.warn(at, "spoofable-key", fmt.Sprintf("a client can send a new %v with every request to get a new bucket, and clients without it share one", a),
					"use ip:address, or a credential of the client")
			case a.Source == policy.SourcePath && !a.IsCaptured() && l.isUnbounded(d, a):
				l.warn(at, "path-key", fmt.Sprintf("every path has its own bucket under rule %q: /users/1 and /users/2 do not share one", d.Name),
					`use a segment as key: match {"path": "/users/{id}"} with path:id in limit_keys; or remove path from limit_keys`)
			}
		}
	}
}

// isUnbounded reports whether d accepts more values of a than it lists.
func (l *linter) isUnbounded(d *rule, a policy.Attribute) bool {
	slot := l.slots[a.String()]
	for i := range d.Clauses {
		if c := &d.Clauses[i]; c.Slot == slot && c.IsList() {
			return false
		}
	}
	return true
}

// clientWritten reports whether clients can omit a.
func clientWritten(a policy.Attribute) bool {
	return a.Source == policy.SourceHeader || a.Source == policy.SourceQuery || a.Source == policy.SourceCookie
}

// checkBypasses finds rules that a client evades by omitting an attribute, if no other rule applies then.
func (l *linter) checkBypasses() {
	var nets []*rule // rules that no client evades that way
	for _, d := range l.rules {
		if d.Missing != inspect.MissingSkip || !slices.ContainsFunc(d.LimitKeys, clientWritten) {
			nets = append(nets, d)
		}
	}
	type hole struct {
		scope, slot int
	}
	reported := map[hole]bool{}
	for _, d := range l.rules {
		if d.Missing != inspect.MissingSkip || d.Fallback {
			continue
		}
		for i, a := range d.LimitKeys {
			slot := l.slots[a.String()]
			if !clientWritten(a) || reported[hole{d.Scope, slot}] || d.constrains(slot) {
				continue
			}
			outside := d.Takes.With(slot, space.Absent())
			caught := slices.ContainsFunc(nets, func(e *rule) bool { return l.countLook() && l.catches(e, outside) }) ||
				len(d.LimitKeys) > 1 && slices.ContainsFunc(l.rules, func(e *rule) bool {
					return l.countLook() && e != d && needsLess(e, d, i) && l.catches(e, outside)
				})
			if l.looks > maxLintLooks {
				return
			}
			if caught {
				continue
			}
			reported[hole{d.Scope, slot}] = true
			l.warn(d.Path, "missing-bypass", fmt.Sprintf("no rule applies to requests without %v: neither %q nor another rule", a, d.Name),
				"set on_missing: deny, or add a rule by ip:address for these requests")
		}
	}
}

// constrains reports whether d has a clause on the attribute at slot. If so, d excludes requests without the
// attribute on purpose.
func (d *rule) constrains(slot int) bool {
	return slices.ContainsFunc(d.Clauses, func(c inspect.Clause) bool { return c.Slot == slot })
}

// catches reports whether e always matches all requests in outside, regardless of its key.
func (l *linter) catches(e *rule, outside space.Box) bool {
	return !e.Timed && !slices.ContainsFunc(e.Takes, func(s space.Side) bool {
		return e.constrains(s.Slot) && !l.space.Side(outside, s.Slot).Within(s.Set)
	})
}

// needsLess reports whether e's keys need only client-written attributes that d needs, too, other than the i'th of
// d's limit_keys.
func needsLess(e, d *rule, i int) bool {
	return !slices.ContainsFunc(e.LimitKeys, func(a policy.Attribute) bool {
		at := slices.IndexFunc(d.LimitKeys, func(b policy.Attribute) bool { return a.String() == b.String() })
		return clientWritten(a) && (at < 0 || at == i)
	})
}
