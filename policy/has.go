// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/metehq/mete/internal/parse"
)

// An attribute can have several values, separated by spaces, as scope in OAuth has. A clause with has holds if one of
// them is in a pattern. The compiler makes an attribute of its own for the pattern: it is "true", or missing. The
// index, the check for unreachable rules and the bounds of charges then need no sets of sets. A request can have any
// of these attributes together, so no two of them exclude each other.

// hasTrue is the value of an attribute that has makes.
const hasTrue = "true"

// valueEnd separates the values of an attribute with several values.
const valueEnd = " "

// readHas reads the values of a clause with has, and returns the clause on the attribute that it makes.
func (c *compiler) readHas(a Attribute, n *parse.Node) (cl clause, ok bool) {
	switch {
	case a.Source != SourceJWT && a.Source != SourceCustom:
		c.Add(n, fmt.Sprintf("%v has one value: has is for claims and custom attributes", a), "write the value, or a list of values")
		return cl, false
	case n.Kind == parse.KindObject:
		c.Add(n, "has must be a value or a list of values", `as in {"has": "admin"}`)
		return cl, false
	}
	var p pattern
	if _, ok := c.readValues(&p, a, n); !ok {
		return cl, false
	}
	for _, v := range slices.Concat(p.exact, p.prefixes) {
		if v == "" || strings.Contains(v, valueEnd) {
			c.Add(n, "a value of has is text without spaces", fmt.Sprintf("list the values, or write %q without has for any value", "*"))
			return cl, false
		}
	}
	return clause{slot: c.slotForHas(a, &p), pattern: pattern{exact: []string{hasTrue}}}, true
}

// slotForHas returns the slot of the attribute that has makes of a and p.
func (c *compiler) slotForHas(a Attribute, p *pattern) int {
	base := c.slotFor(a)
	values := slices.Concat(quoteAll(p.exact, ""), quoteAll(p.prefixes, "*"))
	slices.Sort(values)
	words := " has " + strings.Join(slices.Compact(values), " or ")
	made := Attribute{Source: a.Source, Name: a.Name + words, has: true, text: a.text + words}
	if i, ok := c.slots[made.text]; ok {
		return i
	}
	i := c.slotFor(made)
	c.matcher.from[i], c.matcher.has[i] = 1+base, p
	return i
}

func quoteAll(values []string, end string) (quoted []string) {
	for _, v := range values {
		quoted = append(quoted, strconv.Quote(v+end))
	}
	return quoted
}

// findHas sets f, the fact in a slot that has makes.
func (m *Matcher) findHas(s *scratch, f *fact, slot int) *fact {
	base, p := m.fact(s, m.from[slot]-1), m.has[slot]
	if !base.present {
		return f
	}
	value := fact{present: true}
	for rest := base.value; rest != ""; {
		value.value, rest, _ = strings.Cut(rest, valueEnd)
		if value.value != "" && p.includes(&value) {
			f.value, f.present = hasTrue, true
			break
		}
	}
	return f
}

// describeClause returns the attribute of a clause for people, and the values that the clause wants.
func (m *Matcher) describeClause(cl *clause) (a Attribute, wants string) {
	if p := m.has[cl.slot]; p != nil {
		wants = "has " + p.String()
		if cl.negate {
			wants = "not " + wants
		}
		return m.attributes[m.from[cl.slot]-1], wants
	}
	return m.attributes[cl.slot], cl.pattern.String()
}

// sampleValue returns a value of the pattern of has.
func (p *pattern) sampleValue() string {
	if len(p.exact) > 0 {
		return p.exact[0]
	}
	return p.prefixes[0] + "example"
}
