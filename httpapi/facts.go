// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/metehq/mete/internal/clientaddr"
	"github.com/metehq/mete/internal/httpfacts"
	"github.com/metehq/mete/internal/requestpath"
	"github.com/metehq/mete/policy"
)

// facts are the attributes of one request, as [policy.Attributes]. A search through a few
// is faster than a map; a search through many would keep the server busy.
type facts struct {
	list  []fact         // in the order of the request
	index map[string]int // into list, nil for a few
}

type fact struct {
	name, value string
	absent      bool // the request has null
}

// maxListed is the number of facts without an index.
const maxListed = 16

// Lookup implements [policy.Attributes].
func (f *facts) Lookup(a policy.Attribute) (value string, ok bool) {
	i := f.find(a.String())
	if i < 0 || f.list[i].absent {
		return "", false
	}
	return f.list[i].value, true
}

// find returns the place of an attribute in the list, -1 if there is none.
func (f *facts) find(name string) int {
	if f.index != nil {
		if i, ok := f.index[name]; ok {
			return i
		}
		return -1
	}
	for i := range f.list {
		if f.list[i].name == name {
			return i
		}
	}
	return -1
}

// add adds an attribute that is not there.
func (f *facts) add(one fact) {
	f.list = append(f.list, one)
	switch n := len(f.list); {
	case f.index != nil:
		f.index[one.name] = n - 1
	case n > maxListed:
		f.index = make(map[string]int, 2*n)
		for i := range f.list {
			f.index[f.list[i].name] = i
		}
	}
}

func (f *facts) clear() {
	clear(f.list)
	f.list, f.index = f.list[:0], nil
}

// attributes reads the attributes of one request.
func (d *decoder) attributes() *facts {
	if d.used == len(d.facts) {
		d.facts = append(d.facts, new(facts))
	}
	attrs := d.facts[d.used]
	d.used++
	for text := range d.members(nil) {
		attr, err := d.names.parse(text)
		if err != nil {
			d.fail(strings.TrimPrefix(err.Error(), policy.ErrAttribute.Error()+": "))
			continue
		}
		name := attr.String()
		if attrs.find(name) >= 0 {
			d.fail(fmt.Sprintf("the attribute %q is given twice; say it once", name))
		} else if d.null() {
			attrs.add(fact{name: name, absent: true})
		} else if value := d.wantString("the value of an attribute is a string; leave out an attribute that the request does not have"); d.problem == nil {
			attrs.add(fact{name: name, value: d.canonical(attr, value)})
		}
	}
	return attrs
}

// canonical returns value as the other HTTP front doors spell it. One resource with two
// names would match two rules and have two buckets.
func (d *decoder) canonical(attr policy.Attribute, value string) string {
	switch attr.Source {
	case policy.SourceHeader:
		if attr.Name == "authorization" {
			return httpfacts.Credentials(value)
		}
	case policy.SourceCookie:
		return httpfacts.CookieText(value)
	case policy.SourcePath:
		path, disputed := requestpath.Of(value)
		if disputed {
			d.fail("servers read this path differently; refuse the request, or resolve its dot segments")
		}
		return path
	case policy.SourceHost:
		host, ok := requestpath.Host(value)
		if !ok {
			d.fail("this is no host; write its name, such as example.com, or leave it out")
		}
		return host
	case policy.SourceMethod:
		if value == "" {
			d.fail("the method is empty; write one such as GET, or leave it out")
		}
		return requestpath.Method(value)
	case policy.SourceIP:
		addr, err := netip.ParseAddr(value)
		if err != nil {
			d.fail(fmt.Sprintf("%q is not an address; write one such as 192.0.2.1 or 2001:db8::1, without a port, or leave it out", clip(value)))
			return ""
		}
		var room [len("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")]byte
		if usual := clientaddr.Canonical(addr).AppendTo(room[:0]); string(usual) != value { // no copy as a rule
			return string(usual)
		}
	}
	return value
}

// spellings remembers the attributes of the last names, because clients send the same few
// again and again.
type spellings struct {
	kept []spelling
	next int // to replace
}

type spelling struct {
	text string
	attr policy.Attribute
}

// keptSpellings bounds the names that are remembered.
const keptSpellings = 8

// parse is [policy.ParseAttribute].
func (s *spellings) parse(text string) (policy.Attribute, error) {
	for i := range s.kept {
		if s.kept[i].text == text {
			return s.kept[i].attr, nil
		}
	}
	text = strings.Clone(text) // of a body that is not to be remembered with it
	attr, err := policy.ParseAttribute(text)
	if err != nil {
		return attr, err
	}
	if len(s.kept) < keptSpellings {
		s.kept = append(s.kept, spelling{text, attr})
	} else {
		s.kept[s.next] = spelling{text, attr}
		s.next = (s.next + 1) % keptSpellings
	}
	return attr, nil
}
