// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"fmt"
	"strings"

	"github.com/metehq/mete/internal/httpfacts"
	"github.com/metehq/mete/policy"
)

// facts holds the attributes of one request and implements [policy.Attributes]. A linear search is faster than a
// map for a few attributes, but too slow for many.
type facts struct {
	list  []fact         // in request order
	index map[string]int // positions in list; nil for a short list
}

type fact struct {
	name, value string
	absent      bool // null in the request
}

const maxListed = 16

func (f *facts) Lookup(a policy.Attribute) (value string, ok bool) {
	i := f.find(a.String())
	if i < 0 || f.list[i].absent {
		return "", false
	}
	return f.list[i].value, true
}

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
			d.fail(fmt.Sprintf("duplicate attribute %q; send it once", name))
		} else if d.null() {
			attrs.add(fact{name: name, absent: true})
		} else if value := d.wantString("attribute values must be strings; leave out attributes that the request does not have"); d.problem == nil {
			attrs.add(fact{name: name, value: d.canonical(attr, value)})
		}
	}
	return attrs
}

// canonical returns the normal form of value, or fails.
func (d *decoder) canonical(attr policy.Attribute, value string) string {
	normal, problem := httpfacts.Normalize(attr, value)
	if problem != "" {
		d.fail(problem)
	}
	return normal
}

// A nameCache caches parsed attribute names, because clients send the same few names repeatedly.
type nameCache struct {
	kept []cachedName
	next int // next entry to replace
}

type cachedName struct {
	text string
	attr policy.Attribute
}

// maxCachedNames bounds a nameCache.
const maxCachedNames = 8

// parse is a cached [policy.ParseAttribute].
func (s *nameCache) parse(text string) (policy.Attribute, error) {
	for i := range s.kept {
		if s.kept[i].text == text {
			return s.kept[i].attr, nil
		}
	}
	text = strings.Clone(text) // do not keep the whole body in memory
	attr, err := policy.ParseAttribute(text)
	if err != nil {
		return attr, err
	}
	if len(s.kept) < maxCachedNames {
		s.kept = append(s.kept, cachedName{text, attr})
	} else {
		s.kept[s.next] = cachedName{text, attr}
		s.next = (s.next + 1) % maxCachedNames
	}
	return attr, nil
}
