// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"

	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policy/internal/inspect"
	"github.com/metehq/mete/policy/internal/space"
)

// forwarded are the headers in which proxies say who the client is. Whoever comes
// first can write them, too.
var forwarded = []string{"x-forwarded-for", "forwarded", "x-real-ip", "x-client-ip", "client-ip", "true-client-ip", "cf-connecting-ip",
	"x-cluster-client-ip", "fastly-client-ip", "x-originating-ip", "x-remote-ip", "x-remote-addr"}

// keys finds limit_keys that are easy to change.
func (l *linter) keys() {
	for _, d := range l.all {
		if d.Mode == policy.ModeOff {
			continue
		}
		for i, a := range d.LimitKeys {
			at := d.key(i)
			switch {
			case a.Source == policy.SourceHeader && slices.Contains(forwarded, a.Name):
				l.warn(at, "spoofable-key", fmt.Sprintf("whoever writes %v can have a new bucket with every request", a),
					"say ip:address, and tell the server its trusted proxies")
			case a.Source == policy.SourceHeader && a.Name == "user-agent":
				l.warn(at, "spoofable-key", fmt.Sprintf("whoever writes %v can have a new bucket with every request, and those who do not share one", a),
					"say ip:address, or what a client has to sign in with")
			case a.Source == policy.SourcePath && l.endless(d, a):
				l.warn(at, "path-key", fmt.Sprintf("every path has a bucket of its own under rule %q: /users/1 and /users/2 are two", d.Name),
					`leave path out of limit_keys, and match it: {"path": "/users/*"}`)
			}
		}
	}
}

// endless reports whether d lets in more values of a than it names.
func (l *linter) endless(d *rule, a policy.Attribute) bool {
	slot := l.slots[a.String()]
	for i := range d.Clauses {
		if c := &d.Clauses[i]; c.Slot == slot && !c.Negate && len(c.Prefixes) == 0 {
			return false
		}
	}
	return true
}

// clientWritten reports whether a request lacks a where its client leaves it out.
func clientWritten(a policy.Attribute) bool {
	return a.Source == policy.SourceHeader || a.Source == policy.SourceQuery || a.Source == policy.SourceCookie
}

// bypasses finds rules that a client leaves by leaving something out, where no
// other rule takes it in.
func (l *linter) bypasses() {
	var nets []*rule // those that nobody leaves that way
	for _, d := range l.rules {
		if d.Missing != inspect.MissingSkip || !slices.ContainsFunc(d.LimitKeys, clientWritten) {
			nets = append(nets, d)
		}
	}
	type hole struct {
		scope, slot int
	}
	told := map[hole]bool{}
	for _, d := range l.rules {
		if d.Missing != inspect.MissingSkip || d.Fallback {
			continue
		}
		for i, a := range d.LimitKeys {
			slot := l.slots[a.String()]
			if !clientWritten(a) || told[hole{d.Scope, slot}] || d.about(slot) {
				continue
			}
			outside := d.Takes.With(slot, space.Absent())
			caught := slices.ContainsFunc(nets, func(e *rule) bool { return l.look() && l.catches(e, outside) }) ||
				len(d.LimitKeys) > 1 && slices.ContainsFunc(l.rules, func(e *rule) bool {
					return l.look() && e != d && needsLess(e, d, i) && l.catches(e, outside)
				})
			if l.looks > maxLintLooks {
				return
			}
			if caught {
				continue
			}
			told[hole{d.Scope, slot}] = true
			l.warn(d.Path, "missing-bypass", fmt.Sprintf("requests without %v fall under no rule: neither under %q nor under another", a, d.Name),
				"say on_missing: deny, or add a rule for them, by ip:address")
		}
	}
}

// about reports whether a clause of d is about the attribute at slot: then who
// lacks it is left out on purpose.
func (d *rule) about(slot int) bool {
	return slices.ContainsFunc(d.Clauses, func(c inspect.Clause) bool { return c.Slot == slot })
}

// catches reports whether e takes all requests in outside, whatever it needs for
// its key.
func (l *linter) catches(e *rule, outside space.Box) bool {
	return !slices.ContainsFunc(e.Takes, func(s space.Side) bool {
		return e.about(s.Slot) && !l.space.Side(outside, s.Slot).Within(s.Set)
	})
}

// needsLess reports whether e needs nothing that a client writes but what d needs,
// and that without the i'th of d's limit_keys.
func needsLess(e, d *rule, i int) bool {
	return !slices.ContainsFunc(e.LimitKeys, func(a policy.Attribute) bool {
		at := slices.IndexFunc(d.LimitKeys, func(b policy.Attribute) bool { return a.String() == b.String() })
		return clientWritten(a) && (at < 0 || at == i)
	})
}
