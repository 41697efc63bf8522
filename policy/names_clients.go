// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/json"
	"net/netip"
	"slices"
	"time"
)

// The networks of a clause that identifies clients may together have as many addresses as one network with this prefix.
const (
	widestIPv4 = 16 // a /16
	widestIPv6 = 32 // a /32
)

// NamesClients reports whether an override affects only clients that it identifies. Either its key belongs to a bucket
// that not all clients share, or its match contains ip:address, jwt:sub, or all limit keys of one rule. Method, path
// and host do not count, because clients share them. One of several limit keys, such as the plan in [plan, ip:address],
// does not identify a client. A clause that identifies clients:
//
//   - is not negated, and has no star and no empty value;
//   - has networks that together are no wider than a /16, or a /32 of IPv6.
//
// The error lists all errors in the override, as [Errors].
func (m *Matcher) NamesClients(o Override) (bool, error) {
	if o.ID == "" { // the override gets its ID later
		o.ID = string(o.Action) // an override gets its ID when it is made
	}
	text, err := json.Marshal(o)
	if err != nil {
		return false, Errors{{Reason: "cannot encode the override as JSON: " + err.Error()}}
	}
	c := newCompiler(&Matcher{rules: m.rules, attributes: slices.Clone(m.attributes), from: slices.Clone(m.from), has: slices.Clone(m.has), facts: m.facts, keyer: m.keyer}, time.Time{})
	c.overridable = m.rules
	for i, a := range m.attributes {
		c.slots[a.text] = i
	}
	if root := c.Parse(text, MaxFileBytes); root != nil {
		c.readOverride(root)
	}
	if err := c.errors(); err != nil {
		return false, err
	}
	for _, e := range c.exceptions.whole.list {
		return c.nameClients(e.alternatives), nil
	}
	for i, r := range c.exceptions.rules {
		for components := range r.keys {
			return m.rules[i].keyNamesClients(components), nil
		}
		return c.nameClients(r.list[0].alternatives), nil // the same for every rule
	}
	return false, nil
}

// nameClients reports whether every alternative identifies clients.
func (c *compiler) nameClients(alternatives [][]clause) bool {
	return len(alternatives) > 0 && !slices.ContainsFunc(alternatives, func(clauses []clause) bool { return !c.namesClients(clauses) })
}

func (c *compiler) namesClients(clauses []clause) bool {
	named := map[string]bool{}
	for _, cl := range clauses {
		if a := c.matcher.attributes[cl.slot]; cl.namesValues() {
			if namesAlone(a) {
				return true
			}
			named[a.text] = true
		}
	}
	return slices.ContainsFunc(c.matcher.rules, func(r *Rule) bool {
		return r.distinguishesClients(func(i int) bool { return named[r.LimitKeys[i].text] })
	})
}

// namesAlone reports whether a value of a identifies one client or network.
func namesAlone(a Attribute) bool {
	return a.Source == SourceIP || a.Source == SourceJWT && a.Name == "sub"
}

// distinguishesClients reports whether r has limit keys that distinguish clients, and named holds for all of them.
func (r *Rule) distinguishesClients(named func(i int) bool) bool {
	found := false
	for i, a := range r.LimitKeys {
		if a.Source == SourceMethod || a.Source == SourcePath || a.Source == SourceHost {
			continue
		}
		if found = named(i); !found {
			return false
		}
	}
	return found
}

// namesValues reports whether p matches only complete values.
func (p *pattern) namesValues() bool {
	return !p.negate && len(p.prefixes)+len(p.suffixes)+len(p.templates) == 0 && !slices.Contains(p.exact, "") && areNarrow(p.networks)
}

func areNarrow(networks []netip.Prefix) bool {
	const site = 64 // the smallest IPv6 network that counts
	var four, six uint64
	for _, n := range networks {
		bits := n.Bits()
		switch isFour := n.Addr().Is4(); {
		case isFour && bits < widestIPv4, !isFour && bits < widestIPv6:
			return false // so that the sums do not overflow
		case isFour:
			four += 1 << (32 - bits)
		default:
			six += 1 << max(site-bits, 0)
		}
	}
	return four <= 1<<(32-widestIPv4) && six <= 1<<(site-widestIPv6)
}

// keyNamesClients reports whether the bucket of r with these key components belongs to clients that the key identifies.
func (r *Rule) keyNamesClients(components string) bool {
	values := r.keyValues(components)
	named := func(i int) bool {
		if i >= len(values) || i >= len(r.keys) {
			return false
		}
		value := values[i]
		network, err := netip.ParsePrefix(value)
		return value != "" && (err != nil || r.LimitKeys[i].Source != SourceIP || areNarrow([]netip.Prefix{network}))
	}
	for i, a := range r.LimitKeys {
		if namesAlone(a) && named(i) {
			return true
		}
	}
	return r.distinguishesClients(named)
}
