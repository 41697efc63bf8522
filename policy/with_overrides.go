// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/metehq/mete/internal/parse"
)

// WithOverrides returns a copy of m with list as overrides, in addition to the overrides of its file. They replace
// the list of an earlier WithOverrides. It reports all errors together, as [Errors] with paths that begin with the
// index in list, as in "/3/match". Expired overrides are valid and have no effect. m is unchanged.
func (m *Matcher) WithOverrides(list []Override, now time.Time) (*Matcher, error) {
	text, err := json.Marshal(list)
	if err != nil {
		return nil, Errors{{Reason: "cannot encode the override as JSON: " + err.Error()}}
	}
	next := &Matcher{
		rules: m.rules, groups: m.groups, scopes: m.scopes, index: m.index, attributes: slices.Clone(m.attributes), from: slices.Clone(m.from), has: slices.Clone(m.has), facts: m.facts, uses: m.uses,
		keyer: m.keyer, warnings: m.warnings, version: m.version, expires: m.expires, tests: m.tests, own: m.own,
	}
	c := newCompiler(next, now)
	c.overridable, c.exceptions = m.rules, m.own.clone()
	for i, a := range m.attributes {
		c.slots[a.text] = i
	}
	for i := range c.exceptions.all {
		c.overrideIDs[c.exceptions.all[i].ID] = true
	}
	if len(c.exceptions.all)+len(list) > MaxOverrides {
		c.AddAt(&parse.Node{}, fmt.Sprintf("more than %d overrides, including the overrides of the policy file", MaxOverrides), "remove overrides that are no longer needed")
	} else if root := c.Parse(text, MaxFileBytes); root != nil {
		for _, n := range root.List {
			c.readOverride(n)
		}
	}
	if err := c.errors(); err != nil {
		return nil, err
	}
	c.setExceptions(next)
	return next, nil
}

func (x *exceptions) clone() exceptions {
	if x == nil {
		return exceptions{rules: map[int]*ruleException{}}
	}
	y := exceptions{all: slices.Clone(x.all), whole: exceptionList{list: slices.Clone(x.whole.list)}, rules: make(map[int]*ruleException, len(x.rules))}
	for i, r := range x.rules {
		y.rules[i] = &ruleException{exceptionList: exceptionList{list: slices.Clone(r.list)}, keys: maps.Clone(r.keys)}
		for key, list := range r.keys {
			y.rules[i].keys[key] = slices.Clone(list)
		}
	}
	return y
}
