// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"strings"
)

// A crowd is a set of rules that can be asked which of them may match a request that
// another rule does, without comparing it with each: a table may have a row for each
// of ten thousand endpoints.
type crowd struct {
	members []*translation
	values  map[string]*valueIndex // by attribute
}

// A valueIndex finds the rules by the values of one of their clauses.
type valueIndex struct {
	rules    int              // how many have a clause on the attribute
	exact    map[string][]int // the rules with that value
	prefixes map[string][]int // the rules with that prefix
	lengths  []int            // of the prefixes, in ascending order
	texts    []string         // all values and prefixes, in ascending order
}

// add puts a rule into the crowd.
func (c *crowd) add(t *translation) {
	if c.values == nil {
		c.values = map[string]*valueIndex{}
	}
	for attribute, values := range t.match {
		x := c.values[attribute]
		if x == nil {
			x = &valueIndex{exact: map[string][]int{}, prefixes: map[string][]int{}}
			c.values[attribute] = x
		}
		x.rules++
		for _, v := range values {
			x.add(v, len(c.members))
		}
	}
	c.members = append(c.members, t)
}

func (x *valueIndex) add(value string, rule int) {
	text, star := strings.CutSuffix(value, "*")
	if at, ok := slices.BinarySearch(x.texts, text); !ok {
		x.texts = slices.Insert(x.texts, at, text)
	}
	if !star {
		x.exact[text] = append(x.exact[text], rule)
		return
	}
	x.prefixes[text] = append(x.prefixes[text], rule)
	if at, ok := slices.BinarySearch(x.lengths, len(text)); !ok {
		x.lengths = slices.Insert(x.lengths, at, len(text))
	}
}

// meeting appends the rules that have a value which is as one of these, some of them
// several times. It stops where there are more than most.
func (x *valueIndex) meeting(found []int, values []string, most int) []int {
	for _, v := range values {
		text, star := strings.CutSuffix(v, "*")
		for _, n := range x.lengths {
			if n > len(text) {
				break
			}
			found = append(found, x.prefixes[text[:n]]...)
		}
		found = append(found, x.exact[text]...)
		if !star {
			continue
		}
		at, _ := slices.BinarySearch(x.texts, text)
		for ; at < len(x.texts) && strings.HasPrefix(x.texts[at], text) && len(found) <= most; at++ {
			found = append(append(found, x.exact[x.texts[at]]...), x.prefixes[x.texts[at]]...)
		}
		if len(found) > most {
			break
		}
	}
	return found
}

// apartFrom reports whether it is certain that no request matches both t and one of the
// crowd.
func (c *crowd) apartFrom(t *translation) bool {
	var few []int
	narrowed := false
	for attribute, values := range t.match {
		x := c.values[attribute]
		if x == nil || x.rules < len(c.members) {
			continue // there are others, which may have any value
		}
		most := len(c.members)
		if narrowed {
			most = len(few)
		}
		if found := x.meeting(nil, values, most); !narrowed || len(found) < len(few) {
			few, narrowed = found, true
		}
	}
	if !narrowed || len(few) > len(c.members) {
		return !slices.ContainsFunc(c.members, func(m *translation) bool { return !apart(m, t) })
	}
	return !slices.ContainsFunc(few, func(i int) bool { return !apart(c.members[i], t) })
}

// allApart reports whether no request matches two of the rules.
func allApart(rules []*translation) bool {
	var c crowd
	for _, t := range rules {
		if len(c.members) > 0 && !c.apartFrom(t) {
			return false
		}
		c.add(t)
	}
	return true
}
