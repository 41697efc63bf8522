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

	// maxAlternatives bounds the alternatives of one match.
	maxAlternatives = 16

	maxMatchValueBytes = 1024
)

// A clause is the condition on one attribute of a match.
type clause struct {
	slot int
	pattern
}

// A pattern is a set of values of an attribute.
type pattern struct {
	negate    bool // matches all other values, and absence
	exact     []string
	index     map[string]struct{}     // of exact, if a scan would be slow
	prefixes  []string                // "" matches any present value
	suffixes  []string                // of hosts, each with text before it
	templates []*requestpath.Template // of paths
	tree      *pathTree               // of templates, if a scan would be slow
	networks  []netip.Prefix
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
	for _, suffix := range p.suffixes {
		if len(f.value) > len(suffix) && strings.HasSuffix(f.value, suffix) {
			return true
		}
	}
	if len(p.templates) > 0 && p.findTemplate(f.value) != nil {
		return true
	}
	for _, n := range p.networks {
		if n.Contains(f.addr) {
			return true
		}
	}
	return false
}

// findTemplate returns a template that matches the path, or nil. All of them capture the same texts.
func (p *pattern) findTemplate(path string) *requestpath.Template {
	if p.tree != nil {
		var room [4]int32
		if found := p.tree.find(room[:0], path); len(found) > 0 {
			return p.templates[found[0]]
		}
		return nil
	}
	for _, t := range p.templates {
		if t.Match(path) {
			return t
		}
	}
	return nil
}

// readMatch reads a rule's match, with the requests of each alternative. It returns false if an error leaves them
// unknown.
func (c *compiler) readMatch(d *draft, n *parse.Node) bool {
	base := alternative{at: d.at}
	ok := c.addSelector(&base)
	d.Rule.selectorClauses = len(base.clauses)
	for _, n := range c.readAlternatives(n) {
		alt := alternative{at: d.at, clauses: slices.Clip(base.clauses), takes: base.takes}
		if !c.readClauses(d, &alt, n) || !ok {
			ok = false
			continue
		}
		for i, a := range d.LimitKeys {
			switch {
			case !c.checkCapture(d.keyNode(i), a, [][]clause{alt.clauses}):
				ok = false
			case ok && d.onMissing == inspect.MissingSkip && !a.IsCaptured():
				ok = c.narrow(&alt, d.at, c.slotFor(a), allValues(a).Present())
			}
		}
		d.alternatives, d.takes = append(d.alternatives, alt.clauses), append(d.takes, alt.takes)
	}
	for i, a := range d.LimitKeys {
		d.keys = append(d.keys, newComponent(a, c.slotFor(a), i))
	}
	if d.Mode.IsPartial() && d.onMissing == inspect.MissingDeny {
		a, _ := parseAttribute("ip:address")
		client := newComponent(a, c.slotFor(a), len(d.LimitKeys))
		d.Rule.client = &client
	}
	return ok && len(d.alternatives) > 0 && c.checkAlternatives(d, n)
}

// readAlternatives returns the alternatives of a match: objects with clauses. Without a match, it returns one without
// clauses.
func (c *compiler) readAlternatives(n *parse.Node) []*parse.Node {
	switch {
	case n == nil:
		return []*parse.Node{{Kind: parse.KindObject}}
	case n.Kind == parse.KindList:
		list, ok := c.Items(n, "match", true, maxAlternatives)
		if !ok {
			return nil
		}
		return list
	}
	return []*parse.Node{n}
}

// readClauses reads the clauses of one alternative.
func (c *compiler) readClauses(d *draft, alt *alternative, n *parse.Node) bool {
	switch {
	case n.Kind != parse.KindObject:
		c.Add(n, "match must be an object, or a list of alternatives", `as in {"jwt:plan": "enterprise"}`)
		return false
	case len(n.Fields) > maxMatchClauses:
		c.Add(n, fmt.Sprintf("match must have at most %d clauses", maxMatchClauses), "")
		return false
	}
	ok, seen := true, map[int]bool{}
	for _, f := range pathFirst(n.Fields) {
		ok = c.readClause(d, alt, f, seen) && ok
	}
	return ok
}

func (c *compiler) readClause(d *draft, alt *alternative, f parse.Member, seen map[int]bool) bool {
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
	if !c.checkFact(f.Value, a) {
		return false
	}
	if d.exception && !c.checkCaptureOfRules(d, f.Value, a) || !d.exception && !c.checkCapture(f.Value, a, [][]clause{alt.clauses}) {
		return false
	}
	slot := c.slotFor(a)
	if seen[slot] {
		c.AddAt(f.Value, fmt.Sprintf("match has two clauses for %v", a), "write one clause with a list")
		return false
	}
	seen[slot] = true
	cl, s, ok := clause{slot: slot}, space.Set{}, false
	n, has, formOK := c.readValueForm(f.Value, &cl)
	if !formOK {
		return false
	}
	if has {
		made, ok := c.readHas(a, n)
		if !ok {
			return false
		}
		made.negate = cl.negate
		s := space.One(hasTrue)
		if made.negate {
			s = allValues(a).Not(s)
		}
		alt.clauses = append(alt.clauses, made)
		return c.narrow(alt, f.Value, made.slot, s)
	}
	if s, ok = c.readValues(&cl.pattern, a, n); !ok {
		return false
	}
	if a.IsCaptured() {
		ok = d.exception || c.narrowByCapture(alt, f.Value, &cl)
		alt.clauses = append(alt.clauses, cl)
		return ok
	}
	if cl.negate {
		s = allValues(a).Not(s)
	}
	alt.clauses = append(alt.clauses, cl)
	return c.narrow(alt, f.Value, slot, s)
}

// readValueForm reads not and has around the values of a clause, and returns the node of the values.
func (c *compiler) readValueForm(n *parse.Node, cl *clause) (values *parse.Node, has, ok bool) {
	whole := n
	for n.Kind == parse.KindObject {
		o := c.Object(n, notTable)
		of, not := o.Field("has"), o.Field("not")
		switch {
		case of != nil && len(o.Fields) == 1:
			return of, true, true
		case of != nil && not != nil:
			c.Add(n, "a match value is either has or not", `write {"not": {"has": value}}`)
			return nil, false, false
		case not == nil:
			o.Require("not", `write {"not": value} or {"has": value}`)
			return nil, false, false
		case len(o.Fields) > 1: // an error is reported
			return nil, false, false
		case cl.negate:
			c.Add(whole, "not must not contain another not", "write the value")
			return nil, false, false
		}
		n, cl.negate = not, true
	}
	return n, false, true
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
	if len(p.templates) > scanned {
		p.tree = &pathTree{}
		for i, t := range p.templates {
			p.tree.add(t, int32(i))
		}
	}
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
	if a.Source == SourcePath && !a.IsCaptured() && requestpath.IsTemplate(n.Text) {
		return c.readTemplate(p, n)
	}
	text, star := strings.CutSuffix(n.Text, "*") // only text can end in one
	switch a.Source {
	case SourceIP:
		if star && text == "" {
			p.prefixes = append(p.prefixes, "")
			return allValues(a).Present(), true
		}
		return c.readNetwork(p, n)
	case SourceMethod:
		text = strings.ToUpper(text)
	case SourceHost:
		if strings.HasPrefix(n.Text, "*") && n.Text != "*" {
			return c.readSuffix(p, n)
		}
	}
	if strings.Contains(text, "*") {
		hint := ""
		switch {
		case strings.HasPrefix(text, "^") || strings.HasPrefix(text, "~") || strings.HasSuffix(text, "$"):
			hint = "regular expressions are not supported: write a prefix and a *, or a list of values"
			if a.Source == SourcePath {
				hint = `regular expressions are not supported: write a template such as "/users/{id}", a prefix such as "/users/*", or a list of paths`
			}
		case a.Source == SourceHost:
			c.Add(n, "a * in a host is only allowed instead of its first labels, or at its end", `as in "*.example.com" or "api.*"; or list the hosts`)
			return space.Set{}, false
		case a.Source == SourcePath && strings.HasPrefix(text, "/"):
			hint = fmt.Sprintf("write %q, a template such as \"/users/{id}/orders\", or list the paths", text[:strings.IndexByte(text, '*')+1])
		}
		c.Add(n, "a * is only allowed at the end of a value", hint)
		return space.Set{}, false
	}
	var m requestpath.Mistake
	switch {
	case a.IsCaptured():
	case a.Source == SourcePath:
		text, m = requestpath.RulePath(text, star)
	case a.Source == SourceHost:
		text, m = requestpath.RuleHost(text, star)
	case a.Source == SourceNetwork || a.Source == SourceAgent:
		var ok bool
		if text, ok = c.readDerivedValue(a, n, text, star); !ok {
			return space.Set{}, false
		}
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

// readSuffix reads a host wildcard such as "*.example.com".
func (c *compiler) readSuffix(p *pattern, n *parse.Node) (space.Set, bool) {
	suffix, m := requestpath.RuleHostSuffix(n.Text[1:])
	if m != (requestpath.Mistake{}) {
		c.Add(n, m.Reason, m.Hint)
		return space.Set{}, false
	}
	p.suffixes = append(p.suffixes, suffix)
	return space.WithShape(space.NewSuffix(suffix)), true
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
