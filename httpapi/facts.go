// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"strings"

	"github.com/metehq/mete/policy"
)

// facts are the attributes of one request, as [policy.Attributes]. Few are looked
// through faster than a map is made; many would make that a way to keep the server
// busy. The zero value has none.
type facts struct {
	few    []fact
	many   policy.Map          // nil while few has them all
	absent map[string]struct{} // of which the request says null; nil for none
}

type fact struct{ name, value string }

// fewFacts is how many stay out of the map.
const fewFacts = 16

// Lookup implements [policy.Attributes].
func (f *facts) Lookup(a policy.Attribute) (value string, ok bool) {
	if f.many != nil {
		return f.many.Lookup(a)
	}
	name := a.String()
	for i := range f.few {
		if f.few[i].name == name {
			return f.few[i].value, true
		}
	}
	return "", false
}

// given reports whether the request says anything about a, were it null.
func (f *facts) given(a policy.Attribute) bool {
	if _, ok := f.Lookup(a); ok {
		return true
	}
	_, ok := f.absent[a.String()]
	return ok
}

// addAbsent notes that the request says of a that it is not there.
func (f *facts) addAbsent(a policy.Attribute) {
	if f.absent == nil {
		f.absent = map[string]struct{}{}
	}
	f.absent[a.String()] = struct{}{}
}

// add adds an attribute that is not there.
func (f *facts) add(a policy.Attribute, value string) {
	if f.many == nil && len(f.few) < fewFacts {
		f.few = append(f.few, fact{a.String(), value})
		return
	}
	if f.many == nil {
		f.many = make(policy.Map, 2*fewFacts)
		for _, old := range f.few {
			f.many[old.name] = old.value
		}
	}
	f.many[a.String()] = value
}

func (f *facts) forget() {
	clear(f.few)
	f.few, f.many, f.absent = f.few[:0], nil, nil
}

// spellings remembers what the last names of attributes stood for: clients send the
// same few again and again.
type spellings struct {
	kept []spelling
	next int // to give way
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
