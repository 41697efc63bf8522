// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"

	"github.com/metehq/mete/policy/internal/parse"
)

// Reasons of denials that do not come from a limit, as the root package has them.
var otherReasons = []string{"blocked", "missing_attribute"}

// references are what tests can name.
type references struct {
	rules     map[string]*Rule
	limits    map[string]*Rule // the rule of a limit, where that has another name
	names     []string         // of rules, and then of limits
	reasons   []string
	stages    []string // shares
	overrides []string // IDs

	shadow bool // an override puts rules in shadow
	broken bool // there are mistakes, and so names may be missing
}

// references are those of the rules and overrides that were read.
func (c *compiler) references() references {
	f := references{rules: map[string]*Rule{}, limits: map[string]*Rule{}, broken: c.Found() > 0, reasons: slices.Clone(otherReasons)}
	for _, r := range c.rules() {
		f.rules[r.Name] = r
		f.names = append(f.names, r.Name)
	}
	for i, r := range c.rules() {
		f.limitsOf(r, r.Limits)
		if x := c.exceptions.rules[i]; x != nil {
			for _, e := range x.list {
				f.limitsOf(r, e.limits)
			}
			for _, list := range x.keys {
				for _, e := range list {
					f.limitsOf(r, e.limits)
				}
			}
		}
	}
	for _, o := range c.exceptions.all {
		f.overrides = append(f.overrides, o.ID)
		f.shadow = f.shadow || o.Action == ActionShadow
	}
	return f
}

// limitsOf adds the limits of a rule.
func (f *references) limitsOf(r *Rule, limits []Limit) {
	for i := range limits {
		l := &limits[i]
		if f.rules[l.Name] == nil && f.limits[l.Name] == nil {
			f.limits[l.Name] = r
			f.names = append(f.names, l.Name)
		}
		if !slices.Contains(f.reasons, l.Reason) {
			f.reasons = append(f.reasons, l.Reason)
		}
		for _, s := range l.Stages {
			if !slices.Contains(f.stages, s.Share) {
				f.stages = append(f.stages, s.Share)
			}
		}
	}
}

// What a test says of rules that it names.
type said uint8

const (
	saidToApply said = iota
	saidToDeny
	saidToShadow // it would deny
)

// rule reads the name of a rule or, where limits is set, of one of its limits.
func (r *testReader) rule(n *parse.Node, limits bool, of said) (string, bool) {
	if n.Kind != parse.KindText {
		r.Add(n, "this must be the name of a rule", "")
		return "", false
	}
	return n.Text, r.isRule(n, n.Text, limits, of)
}

// isRule checks a name that stands at n.
func (r *testReader) isRule(n *parse.Node, name string, limits bool, of said) bool {
	rule, names := r.known.rules[name], r.known.names
	if rule == nil && limits {
		rule = r.known.limits[name]
	}
	if !limits {
		names = names[:len(r.known.rules)]
	}
	switch {
	case r.known.broken:
		return true
	case rule == nil && slices.Contains(r.known.overrides, name):
		r.Absent(n, fmt.Sprintf("%q is an override, and no rule", name), "say override")
	case rule == nil && !limits && r.known.limits[name] != nil:
		r.Absent(n, fmt.Sprintf("%q is a limit, and no rule", name), fmt.Sprintf("write %q", r.known.limits[name].Name))
	case rule == nil:
		shown, rest := parse.Cut(name)
		r.Absent(n, fmt.Sprintf("no rule is called %q%s", shown, rest), parse.Nearest(name, names))
	case rule.Mode == ModeOff:
		r.Absent(n, fmt.Sprintf("the mode of rule %q is off: it has no part in anything", rule.Name), "")
	case of != saidToShadow && rule.Mode == ModeShadow:
		r.Absent(n, fmt.Sprintf("rule %q is in shadow: it decides nothing", rule.Name), "say would_deny")
	case of == saidToShadow && rule.Mode == ModeEnforce && !r.known.shadow:
		r.Absent(n, fmt.Sprintf("rule %q is not in shadow", rule.Name), "say denied")
	default:
		return true
	}
	return false
}

// word reads a text that must be one of words, or "none", for which it returns "".
func (r *testReader) word(n *parse.Node, what string, words []string) *string {
	switch text, ok := r.String(n, what, maxTestValueBytes); {
	case !ok:
		return nil
	case text == "none" && !slices.Contains(words, text):
		return new(string)
	case !slices.Contains(words, text) && !r.known.broken:
		hint := parse.Nearest(text, words)
		if hint == "" && len(words) > 0 && len(words) < 10 {
			hint = "known are " + parse.Enumerate(words, "and")
		}
		r.Add(n, fmt.Sprintf("the policy has no such %s", what), hint)
		return nil
	default:
		return &text
	}
}
