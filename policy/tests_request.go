// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/metehq/mete/internal/requestpath"
	"github.com/metehq/mete/internal/spell"
)

// attributesOf are those of a test's requests. Where a number is to be put into
// them, from is what is to be an address then.
type attributesOf struct {
	Map
	numbered bool
	address  *node
}

// change returns the attributes of a step: those of its test, with and without
// some.
func (r *testReader) change(o *object, base attributesOf) attributesOf {
	with, without := o.field("with"), o.field("without")
	if with == nil && without == nil {
		return base
	}
	attrs := base
	attrs.Map = maps.Clone(base.Map)
	if without != nil {
		list := []*node{without}
		if without.kind == isList {
			list, _ = r.list(without, "without", true, len(base.Map)+1)
		}
		for _, n := range list {
			if a, ok := r.attribute(n); ok {
				if _, there := base.Map[a.text]; !there {
					r.add(n, "the request of the test does not have it", nearest(a.text, slices.Sorted(maps.Keys(base.Map))))
				}
				delete(attrs.Map, a.text)
			}
		}
	}
	if with != nil {
		r.attributes(&attrs, with, "with")
	}
	attrs.numbered = false
	for _, value := range attrs.Map {
		attrs.numbered = attrs.numbered || strings.Contains(value, Number)
	}
	return attrs
}

// attributes reads the attributes of a request into attrs, in the spelling that
// front doors give them.
func (r *testReader) attributes(attrs *attributesOf, n *node, what string) {
	if n.kind != isObject {
		r.add(n, what+" must be an object", `as in {"header:x-api-key": "k1"}`)
		return
	}
	seen := map[string]bool{}
	for _, f := range n.fields {
		a, err := parseAttribute(f.name)
		switch {
		case err != nil:
			name, rest := cut(f.name)
			r.absent(f.value, fmt.Sprintf("%q%s: %s", name, rest, err.reason), err.hint)
			continue
		case a.Source == IP && a.Bits != defaultBits:
			r.absent(f.value, "a request has a whole address", "write ip:address")
			continue
		case seen[a.text]:
			r.absent(f.value, fmt.Sprintf("%v is given twice", a), "remove one of them")
			continue
		}
		seen[a.text] = true
		value, ok := r.value(a, f.value)
		if ok || a.Source != IP { // a mistake is no reason for others
			attrs.Map[a.text] = value
		}
		if ok {
			attrs.numbered = attrs.numbered || strings.Contains(value, Number)
			if a.Source == IP {
				attrs.address = f.value
			}
			r.unread(a, f.value)
		}
	}
}

// value reads the value of an attribute. Numbers and booleans are what they are
// written as, as in a match.
func (r *testReader) value(a Attribute, n *node) (string, bool) {
	switch {
	case n.kind == isNull:
		r.add(n, fmt.Sprintf("%v must have a value", a), "leave it out, or name it in a step's without, where the request lacks it")
		return "", false
	case n.kind == isList || n.kind == isObject:
		r.add(n, fmt.Sprintf("%v must be one string", a), "")
		return "", false
	case len(n.text) > maxTestValueBytes:
		r.add(n, fmt.Sprintf("%v must have at most %d bytes, not %d", a, maxTestValueBytes, len(n.text)), "")
		return "", false
	}
	switch a.Source {
	case Path:
		if strings.ContainsAny(n.text, "?#") {
			r.add(n, "the query is not part of the path", "say query:NAME")
			return "", false
		}
		path, disputed := requestpath.Of(n.text)
		if disputed {
			r.add(n, "servers read this path differently, and front doors refuse it", "resolve its dot segments")
		}
		return path, !disputed
	case Host:
		host, ok := requestpath.Host(n.text)
		if !ok {
			r.add(n, "this is no host", "write its name, such as example.com, or leave it out")
		}
		return host, ok
	case Method:
		if n.text == "" {
			r.add(n, "the method is empty", "write one such as GET, or leave it out")
		}
		return requestpath.Method(n.text), true
	}
	return n.text, true
}

// addresses checks the address of a step's requests, once it is known how many
// there are.
func (r *testReader) addresses(s *Step, attrs attributesOf) {
	value, ok := attrs.Map["ip:address"]
	if !ok || r.badAddresses[attrs.address] {
		return
	}
	for _, n := range []int{1, s.Times} {
		text := strings.ReplaceAll(value, Number, strconv.Itoa(n))
		if _, err := netip.ParseAddr(text); err != nil {
			hint := "write one such as 192.0.2.1 or 2001:db8::1, without a port"
			if text != value {
				hint = fmt.Sprintf("for request %d it is %q", n, text)
			}
			r.add(attrs.address, "this is no address", hint)
			r.badAddresses[attrs.address] = true
			return
		}
	}
}

// unread warns of an attribute that no rule reads, and whose name is nearly that
// of one that some rule does.
func (r *testReader) unread(a Attribute, n *node) {
	if _, read := r.slots[a.text]; read {
		return
	}
	for _, b := range r.matcher.attributes {
		if b.Source == a.Source && spell.Distance(a.text, b.text) == 1 {
			r.warn(n, "unread-attribute", fmt.Sprintf("no rule reads %v", a), fmt.Sprintf("did you mean %q?", b.text))
			return
		}
	}
}
