// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/metehq/mete/internal/parse"
	"github.com/metehq/mete/internal/requestpath"
	"github.com/metehq/mete/internal/spell"
	"github.com/metehq/mete/policy"
)

// attributesOf are the attributes of a test's requests. If numbered is set, their values contain [NumberPlaceholder]. address
// is the node of the address.
type attributesOf struct {
	policy.Map
	numbered bool
	address  *parse.Node
}

// changeAttributes returns the attributes of a step: the test's attributes with the changes of with and without.
func (r *reader) changeAttributes(o *parse.Object, base attributesOf) attributesOf {
	with, without := o.Field("with"), o.Field("without")
	if with == nil && without == nil {
		return base
	}
	attrs := base
	attrs.Map = maps.Clone(base.Map)
	if without != nil {
		list := []*parse.Node{without}
		if without.Kind == parse.KindList {
			list, _ = r.Items(without, "without", true, len(base.Map)+1)
		}
		for _, n := range list {
			if a, ok := r.readAttribute(n); ok {
				if _, there := base.Map[a.String()]; !there {
					r.Add(n, "the request of the test does not have the attribute", parse.Nearest(a.String(), slices.Sorted(maps.Keys(base.Map))))
				}
				delete(attrs.Map, a.String())
			}
		}
	}
	if with != nil {
		r.readAttributes(&attrs, with, "with")
	}
	attrs.numbered = false
	for _, value := range attrs.Map {
		attrs.numbered = attrs.numbered || strings.Contains(value, NumberPlaceholder)
	}
	return attrs
}

// readAttributes reads the attributes of a request into attrs, normalized like the endpoints normalize them.
func (r *reader) readAttributes(attrs *attributesOf, n *parse.Node, what string) {
	if n.Kind != parse.KindObject {
		r.Add(n, what+" must be an object", `as in {"header:x-api-key": "k1"}`)
		return
	}
	seen := map[string]bool{}
	for _, f := range n.Fields {
		a, err := policy.ParseAttribute(f.Name)
		switch {
		case err != nil:
			name, rest := parse.Cut(f.Name)
			reason, hint := splitError(err)
			r.AddAt(f.Value, fmt.Sprintf("%q%s: %s", name, rest, reason), hint)
			continue
		case a.Source == policy.SourceIP && a.Bits != wholeAddress.Bits:
			r.AddAt(f.Value, "a request needs a complete address", "write ip:address")
			continue
		case seen[a.String()]:
			r.AddAt(f.Value, fmt.Sprintf("%v is given twice", a), "remove one of them")
			continue
		}
		seen[a.String()] = true
		value, ok := r.readValue(a, f.Value)
		if ok || a.Source != policy.SourceIP { // an error must not cause further errors
			attrs.Map[a.String()] = value
		}
		if ok {
			attrs.numbered = attrs.numbered || strings.Contains(value, NumberPlaceholder)
			if a.Source == policy.SourceIP {
				attrs.address = f.Value
			}
			r.warnUnread(a, f.Value)
		}
	}
}

// readValue reads the value of an attribute. As in a match, numbers and booleans are text.
func (r *reader) readValue(a policy.Attribute, n *parse.Node) (string, bool) {
	switch {
	case n.Kind == parse.KindNull:
		r.Add(n, fmt.Sprintf("%v must have a value", a), "remove it, or list it in the without of a step")
		return "", false
	case n.Kind == parse.KindList || n.Kind == parse.KindObject:
		r.Add(n, fmt.Sprintf("%v must be one string", a), "")
		return "", false
	case len(n.Text) > maxTestValueBytes:
		r.Add(n, fmt.Sprintf("%v must have at most %d bytes, not %d", a, maxTestValueBytes, len(n.Text)), "")
		return "", false
	}
	switch a.Source {
	case policy.SourcePath:
		if strings.ContainsAny(n.Text, "?#") {
			r.Add(n, "the query is not part of the path", "use query:NAME")
			return "", false
		}
		path, disputed := requestpath.Parse(n.Text)
		if disputed {
			r.Add(n, "servers interpret this path differently, so endpoints reject it", "remove its dot segments")
		}
		return path, !disputed
	case policy.SourceHost:
		host, ok := requestpath.Host(n.Text)
		if !ok {
			r.Add(n, "invalid host", "write a name such as example.com, or remove it")
		}
		return host, ok
	case policy.SourceMethod:
		if n.Text == "" {
			r.Add(n, "the method is empty", "write one such as GET, or leave it out")
		}
		return requestpath.Method(n.Text), true
	}
	return n.Text, true
}

// checkAddress checks the address of a step's requests, for the first and the last request number.
func (r *reader) checkAddress(s *Step, attrs attributesOf) {
	value, ok := attrs.Map["ip:address"]
	if !ok || r.badAddresses[attrs.address] {
		return
	}
	for _, n := range []int{1, s.Times} {
		text := strings.ReplaceAll(value, NumberPlaceholder, strconv.Itoa(n))
		if _, err := netip.ParseAddr(text); err != nil {
			hint := "write one such as 192.0.2.1 or 2001:db8::1, without a port"
			if text != value {
				hint = fmt.Sprintf("for request %d it is %q", n, text)
			}
			r.Add(attrs.address, "invalid address", hint)
			r.badAddresses[attrs.address] = true
			return
		}
	}
}

// warnUnread warns about an attribute that no rule reads, if its name resembles the name of an attribute that a
// rule reads.
func (r *reader) warnUnread(a policy.Attribute, n *parse.Node) {
	if r.matcher == nil {
		return
	}
	all := r.matcher.Attributes()
	if slices.ContainsFunc(all, func(b policy.Attribute) bool { return a.String() == b.String() }) {
		return
	}
	for _, b := range all {
		if b.Source == a.Source && spell.Distance(a.String(), b.String()) == 1 {
			r.warn(n, "unread-attribute", fmt.Sprintf("no rule reads %v", a), fmt.Sprintf("did you mean %q?", b.String()))
			return
		}
	}
}

func (r *reader) warn(n *parse.Node, code, reason, hint string) {
	r.warned = append(r.warned, policy.Warning{Path: n.Path, Code: code, Reason: reason, Hint: hint})
}

var wholeAddress, _ = policy.ParseAttribute("ip:address")

func (r *reader) readAttribute(n *parse.Node) (policy.Attribute, bool) {
	if n.Kind != parse.KindText {
		r.Add(n, "an attribute must be a string", `as in "header:x-api-key"`)
		return policy.Attribute{}, false
	}
	a, err := policy.ParseAttribute(n.Text)
	if err != nil {
		reason, hint := splitError(err)
		r.Add(n, reason, hint)
	}
	return a, err == nil
}

func splitError(err error) (reason, hint string) {
	var m interface{ Parts() (reason, hint string) }
	if errors.As(err, &m) {
		return m.Parts()
	}
	return err.Error(), ""
}
