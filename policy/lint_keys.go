// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
)

// forwarded are the headers in which proxies say who the client is. Whoever comes
// first can write them, too.
var forwarded = []string{"x-forwarded-for", "forwarded", "x-real-ip", "x-client-ip", "client-ip", "true-client-ip", "cf-connecting-ip",
	"x-cluster-client-ip", "fastly-client-ip", "x-originating-ip", "x-remote-ip", "x-remote-addr"}

// keys finds limit_keys that are easy to change.
func (l *linter) keys() {
	for _, d := range l.drafts {
		n := d.at.Field("limit_keys")
		if n == nil || d.Mode == Off {
			continue
		}
		for i, a := range d.LimitKeys {
			at := n.List[i]
			switch {
			case a.Source == Header && slices.Contains(forwarded, a.Name):
				l.warn(at, "spoofable-key", fmt.Sprintf("whoever writes %v can have a new bucket with every request", a),
					"say ip:address, and tell the server its trusted proxies")
			case a.Source == Header && a.Name == "user-agent":
				l.warn(at, "spoofable-key", fmt.Sprintf("whoever writes %v can have a new bucket with every request, and those who do not share one", a),
					"say ip:address, or what a client has to sign in with")
			case a.Source == Path && l.endless(d, a):
				l.warn(at, "path-key", fmt.Sprintf("every path has a bucket of its own under rule %q: /users/1 and /users/2 are two", d.Name),
					`leave path out of limit_keys, and match it: {"path": "/users/*"}`)
			}
		}
	}
}

// endless reports whether d lets in more values of a than it names.
func (l *linter) endless(d *draft, a Attribute) bool {
	slot := l.slots[a.text]
	for i := range d.clauses {
		if c := &d.clauses[i]; c.slot == slot && !c.negate && len(c.prefixes) == 0 {
			return false
		}
	}
	return true
}

// clientWritten reports whether a request lacks a where its client leaves it out.
func clientWritten(a Attribute) bool {
	return a.Source == Header || a.Source == Query || a.Source == Cookie
}

// bypasses finds rules that a client leaves by leaving something out, where no
// other rule takes it in.
func (l *linter) bypasses() {
	var nets []*draft // those that nobody leaves that way
	for _, d := range l.rules {
		if d.onMissing != missingSkip || !slices.ContainsFunc(d.LimitKeys, clientWritten) {
			nets = append(nets, d)
		}
	}
	type hole struct {
		scope, slot int
	}
	told := map[hole]bool{}
	for _, d := range l.rules {
		if d.onMissing != missingSkip || d.fallback {
			continue
		}
		for i, a := range d.LimitKeys {
			slot := l.slots[a.text]
			if !clientWritten(a) || told[hole{d.scope, slot}] || d.about(slot) {
				continue
			}
			outside := d.takes.with(slot, set{missing: true})
			caught := slices.ContainsFunc(nets, func(e *draft) bool { return l.look() && l.catches(e, outside) }) ||
				len(d.LimitKeys) > 1 && slices.ContainsFunc(l.rules, func(e *draft) bool {
					return l.look() && e != d && needsLess(e, d, i) && l.catches(e, outside)
				})
			if l.looks > maxLintLooks {
				return
			}
			if caught {
				continue
			}
			told[hole{d.scope, slot}] = true
			l.warn(d.at, "missing-bypass", fmt.Sprintf("requests without %v fall under no rule: neither under %q nor under another", a, d.Name),
				"say on_missing: deny, or add a rule for them, by ip:address")
		}
	}
}

// about reports whether a clause of d is about the attribute at slot: then who
// lacks it is left out on purpose.
func (d *draft) about(slot int) bool {
	return slices.ContainsFunc(d.clauses, func(c clause) bool { return c.slot == slot })
}

// catches reports whether e takes all requests in outside, whatever it needs for
// its key.
func (l *linter) catches(e *draft, outside box) bool {
	return !slices.ContainsFunc(e.takes, func(s side) bool {
		return e.about(s.slot) && !l.side(outside, s.slot).within(s.set)
	})
}

// needsLess reports whether e needs nothing that a client writes but what d needs,
// and that without the i'th of d's limit_keys.
func needsLess(e, d *draft, i int) bool {
	return !slices.ContainsFunc(e.LimitKeys, func(a Attribute) bool {
		at := slices.IndexFunc(d.LimitKeys, func(b Attribute) bool { return a.text == b.text })
		return clientWritten(a) && (at < 0 || at == i)
	})
}
