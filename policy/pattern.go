// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/metehq/mete/internal/clientaddr"
	"github.com/metehq/mete/internal/parse"
	"github.com/metehq/mete/internal/requestpath"
	"github.com/metehq/mete/policy/internal/inspect"
	"github.com/metehq/mete/policy/internal/space"
)

const (
	// maxMatchValues bounds the values of one match clause, and maxMatchClauses the clauses of one rule.
	maxMatchValues  = 1024
	maxMatchClauses = 16

	maxMatchValueBytes = 1024
)

// A clause is the condition on one attribute of a match.
type clause struct {
	slot int
	pattern
}

// A pattern is a set of values of an attribute.
type pattern struct {
	negate   bool // matches all other values, and absence
	exact    []string
	index    map[string]struct{} // of exact, if a scan would be slow
	prefixes []string            // "" matches any present value
	networks []netip.Prefix
}

// scanned is the number of values that are compared one by one.
const scanned = 8

func (p *pattern) holds(f *fact) bool {
	return f.present && p.includes(f) != p.negate || !f.present && p.negate
}

func (p *pattern) includes(f *fact) bool {
	if p.index != nil {
		if _, ok := p.index[f.value]; ok {
			return true
		}
	} else if slices.Contains(p.exact, f.value) {
		return true
	}
	for _, prefix := range p.prefixes {
		if strings.HasPrefix(f.value, prefix) {
			return true
		}
	}
	for _, n := range p.networks {
		if n.Contains(f.addr) {
			return true
		}
	}
	return false
}

// readMatch reads a rule's match, and narrows the rule's box by the match and by the key. It returns false if an
// error leaves the box unknown.
func (c *compiler) readMatch(d *draft, n *parse.Node) bool {
	ok := c.addSelector(d)
	d.Rule.selectorClauses = len(d.clauses)
	if n != nil {
		switch {
		case n.Kind != parse.KindObject:
			c.Add(n, "match must be an object", `as in {"jwt:plan": "enterprise"}`)
			return false
		case len(n.Fields) > maxMatchClauses:
			c.Add(n, fmt.Sprintf("match must have at most %d clauses", maxMatchClauses), "")
			return false
		}
		seen := map[int]bool{}
		for _, f := range n.Fields {
			ok = c.readClause(d, f, seen) && ok
		}
	}
	for i, a := range d.LimitKeys {
		if !ok {
			break
		}
		slot := c.slotFor(a)
		d.keys = append(d.keys, newComponent(a, slot, i))
		if d.onMissing == inspect.MissingSkip {
			ok = c.narrow(d, d.at, slot, allValues(a).Present())
		}
	}
	if d.Mode.IsPartial() && d.onMissing == inspect.MissingDeny {
		a, _ := parseAttribute("ip:address")
		client := newComponent(a, c.slotFor(a), len(d.LimitKeys))
		d.Rule.client = &client
	}
	return ok
}

func (c *compiler) readClause(d *draft, f parse.Member, seen map[int]bool) bool {
	a, err := parseAttribute(f.Name)
	if err != nil {
		name, rest := parse.Cut(f.Name)
		c.AddAt(f.Value, fmt.Sprintf("%q%s: %s", name, rest, err.reason), err.hint)
		return false
	}
	if a.Source == SourceIP && a.Bits != defaultBits {
		c.AddAt(f.Value, "match uses ip:address without bits, because networks have their own prefix", "write ip:address")
		return false
	}
	slot := c.slotFor(a)
	if seen[slot] {
		c.AddAt(f.Value, fmt.Sprintf("match has two clauses for %v", a), "write one clause with a list")
		return false
	}
	seen[slot] = true
	cl, s, ok := clause{slot: slot}, space.Set{}, false
	n := f.Value
	if n.Kind == parse.KindObject {
		o := c.Object(n, notTable)
		if n = o.Require("not", `write {"not": value}`); n == nil || len(o.Fields) > 1 {
			return false
		}
		cl.negate = true
	}
	if s, ok = c.readValues(&cl.pattern, a, n); !ok {
		return false
	}
	if cl.negate {
		s = allValues(a).Not(s)
	}
	d.clauses = append(d.clauses, cl)
	return c.narrow(d, f.Value, slot, s)
}

// readValues reads one value of a match or a list of them.
func (c *compiler) readValues(p *pattern, a Attribute, n *parse.Node) (all space.Set, ok bool) {
	list := []*parse.Node{n}
	if n.Kind == parse.KindList {
		if list, ok = c.Items(n, "a list of values", true, maxMatchValues); !ok {
			return all, false
		}
	}
	ok = true
	var sets []space.Set
	for _, item := range list {
		s, one := c.readValue(p, a, item)
		sets, ok = append(sets, s), ok && one
	}
	p.finish()
	return space.Union(sets), ok
}

func (p *pattern) finish() {
	if len(p.exact) <= scanned {
		return
	}
	p.index = make(map[string]struct{}, len(p.exact))
	for _, s := range p.exact {
		p.index[s] = struct{}{}
	}
}

// readValue reads one value of a match: text, "prefix*", or a network.
func (c *compiler) readValue(p *pattern, a Attribute, n *parse.Node) (space.Set, bool) {
	switch {
	case n.Kind != parse.KindText && n.Kind != parse.KindNumber && n.Kind != parse.KindBool:
		c.Add(n, "a match value must be a string, a number, a boolean, a list of them, or {\"not\": …}", "")
		return space.Set{}, false
	case len(n.Text) > maxMatchValueBytes:
		c.Add(n, fmt.Sprintf("a match value must have at most %d bytes", maxMatchValueBytes), "")
		return space.Set{}, false
	}
	text, star := n.Text, false
	if n.Kind == parse.KindText {
		text, star = strings.CutSuffix(n.Text, "*")
	}
	switch a.Source {
	case SourceIP:
		if star && text == "" {
			p.prefixes = append(p.prefixes, "")
			return allValues(a).Present(), true
		}
		return c.readNetwork(p, n)
	case SourceMethod:
		text = strings.ToUpper(text)
	}
	if strings.Contains(text, "*") {
		hint := ""
		switch {
		case strings.HasPrefix(text, "^") || strings.HasPrefix(text, "~") || strings.HasSuffix(text, "$"):
			hint = "regular expressions are not supported: write a prefix and a *, or a list of values"
		case a.Source == SourceHost:
			hint = "list the hosts"
		case a.Source == SourcePath && strings.HasPrefix(text, "/"):
			hint = fmt.Sprintf("write %q, or list the paths", text[:strings.IndexByte(text, '*')+1])
		}
		c.Add(n, "a * is only allowed at the end of a value", hint)
		return space.Set{}, false
	}
	var m requestpath.Mistake
	switch a.Source {
	case SourcePath:
		text, m = requestpath.RulePath(text, star)
	case SourceHost:
		text, m = requestpath.RuleHost(text, star)
	}
	switch {
	case m != requestpath.Mistake{}:
		c.Add(n, m.Reason, m.Hint)
		return space.Set{}, false
	case star:
		p.prefixes = append(p.prefixes, text)
		return space.WithPrefix(text), true
	}
	p.exact = append(p.exact, text)
	return space.One(text), true
}

func (c *compiler) readNetwork(p *pattern, n *parse.Node) (space.Set, bool) {
	prefix, err := netip.ParsePrefix(n.Text)
	if addr, aerr := netip.ParseAddr(n.Text); aerr == nil && addr.Zone() == "" {
		addr = clientaddr.Canonical(addr)
		prefix, err = netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	switch {
	case err != nil:
		c.Add(n, "not an address or network", `as in "192.0.2.0/24" or "2001:db8::/32"`)
	case clientaddr.Unreachable(prefix):
		c.Add(n, "clients of NAT64 and 6to4 are identified by their IPv4 addresses", `as in "192.0.2.0/24"`)
	case prefix.Addr().Is4In6():
		c.Add(n, "write an IPv4-mapped network as an IPv4 network", `as in "192.0.2.0/24"`)
	case prefix != prefix.Masked():
		c.Add(n, "the network has bits set beyond its prefix", fmt.Sprintf("write %q", prefix.Masked()))
	default:
		p.networks = append(p.networks, prefix)
		return space.Network(prefix), true
	}
	return space.Set{}, false
}
