// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// A condition is a clause of a match in the policy language. A request must have one of the values of the
// attribute, or none of them if negate is set.
type condition struct {
	attribute string
	values    []string
	negate    bool
}

func (c condition) value() any {
	if c.negate {
		return Not(c.values...)
	}
	return oneOrMore(c.values)
}

// apply adds conditions to a rule, which must all hold. It returns an error if one rule cannot express all
// conditions. reachable reports whether any request can satisfy them.
func (r *Rule) apply(conds []condition) (reachable bool, err error) {
	if r.Match == nil {
		r.Match = map[string]any{}
	}
	var order []string
	byAttribute := map[string][]condition{}
	for _, c := range conds {
		if byAttribute[c.attribute] == nil {
			order = append(order, c.attribute)
		}
		byAttribute[c.attribute] = append(byAttribute[c.attribute], c)
	}
	for _, attribute := range order {
		all := byAttribute[attribute]
		var in, out []string
		positive := false
		for _, c := range all {
			switch {
			case c.negate:
				out = append(out, c.values...)
			case !positive:
				in, positive = c.values, true
			default:
				in = intersect(attribute, in, c.values)
			}
		}
		slices.Sort(out)
		out = slices.Compact(out)
		if !positive {
			r.Match[attribute] = Not(out...)
			continue
		}
		in = slices.DeleteFunc(slices.Clone(in), func(value string) bool { return includes(attribute, out, value) })
		if len(in) == 0 {
			return false, nil
		}
		// Other values of out do not matter, because in excludes them.
		out = slices.DeleteFunc(out, func(value string) bool { return !includes(attribute, in, value) })
		switch {
		case len(out) == 0:
			r.Match[attribute] = oneOrMore(in)
		case attribute == "path":
			r.Match[attribute], r.Within = Not(out...), selectPaths(in)
		default:
			return true, fmt.Errorf("%s must be one of %v and none of %v", attribute, in, out)
		}
	}
	return true, nil
}

func selectPaths(values []string) *Selector {
	s := &Selector{}
	for _, value := range values {
		if prefix, star := strings.CutSuffix(value, "*"); star {
			s.Prefix = append(s.Prefix, prefix)
		} else {
			s.Exact = append(s.Exact, value)
		}
	}
	return s
}

func intersect(attribute string, a, b []string) (both []string) {
	for _, value := range a {
		if includes(attribute, b, value) {
			both = append(both, value)
		}
	}
	for _, value := range b {
		if includes(attribute, a, value) && !slices.Contains(both, value) {
			both = append(both, value)
		}
	}
	return both
}

// includes reports whether the values match all requests that value matches.
func includes(attribute string, values []string, value string) bool {
	return slices.ContainsFunc(values, func(wide string) bool {
		if attribute == "ip:address" {
			p, q := network(wide), network(value)
			return wide == "*" || p.IsValid() && q.IsValid() && p.Bits() <= q.Bits() && p.Overlaps(q)
		}
		prefix, star := strings.CutSuffix(wide, "*")
		return wide == value || star && strings.HasPrefix(value, prefix)
	})
}

// network parses a network or an address.
func network(text string) netip.Prefix {
	if addr, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen())
	}
	p, _ := netip.ParsePrefix(text)
	return p.Masked()
}

// networkValue returns the match value for an address or network, or "".
func networkValue(text string) string {
	switch p := network(text); {
	case !p.IsValid():
		return ""
	case p.IsSingleIP():
		return p.Addr().String()
	default:
		return p.String()
	}
}

// literalValue escapes a match value for a path.
func literalValue(attribute, value string) string {
	if attribute == "path" {
		return pathValue(value)
	}
	return value
}

// literalRegexp returns the literal text of a regular expression that matches an exact text or a prefix. It
// returns false for all other expressions.
func literalRegexp(expr string) (literal string, exact, ok bool) {
	expr, anchored := strings.CutPrefix(expr, "^")
	expr, exact = strings.CutSuffix(expr, "$")
	if !exact {
		expr = strings.TrimSuffix(expr, ".*")
	}
	re, err := regexp.Compile(expr)
	if err != nil || !anchored {
		return "", false, false
	}
	literal, whole := re.LiteralPrefix()
	return literal, exact, whole && literal != ""
}
