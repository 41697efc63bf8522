// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"fmt"
	"slices"

	"github.com/metehq/mete/internal/parse"
	"github.com/metehq/mete/policy"
)

// otherReasons are the reasons of denials that do not come from a limit, as in package mete.
var otherReasons = []string{"blocked", "missing_attribute", policy.ReasonPromptTokens, policy.ReasonRequestTokens}

type references struct {
	rules     map[string]*policy.Rule
	limits    map[string]*policy.Rule // the rule of a limit, if the limit has a name of its own
	names     []string                // of rules, then of limits
	reasons   []string
	stages    []string // shares
	overrides []string // IDs

	shadow bool // an override puts rules in shadow
	broken bool // the policy has errors, so names may be missing
}

func (r *reader) findReferences() references {
	f := references{rules: map[string]*policy.Rule{}, limits: map[string]*policy.Rule{}, broken: r.matcher == nil,
		reasons: slices.Concat(otherReasons, r.in.Reasons), stages: r.in.Stages}
	if f.broken {
		return f
	}
	rules := r.matcher.Rules()
	for _, rule := range rules {
		f.rules[rule.Name] = rule
		f.names = append(f.names, rule.Name)
	}
	for _, rule := range rules {
		for i := range rule.Limits {
			if name := rule.Limits[i].Name; f.rules[name] == nil && f.limits[name] == nil {
				f.limits[name] = rule
				f.names = append(f.names, name)
			}
		}
	}
	for _, o := range r.matcher.Overrides() {
		f.overrides = append(f.overrides, o.ID)
		f.shadow = f.shadow || o.Action == policy.ActionShadow
	}
	return f
}

// A claim is a statement in a test about a named rule.
type claim uint8

const (
	claimApplies claim = iota
	claimDenies
	claimWouldDeny // the rule would deny
)

// readRuleName reads the name of a rule or, if limits is set, of one of its limits.
func (r *reader) readRuleName(n *parse.Node, limits bool, of claim) (string, bool) {
	if n.Kind != parse.KindText {
		r.Add(n, "this must be the name of a rule", "")
		return "", false
	}
	return n.Text, r.checkRule(n, n.Text, limits, of)
}

func (r *reader) checkRule(n *parse.Node, name string, limits bool, of claim) bool {
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
		r.AddAt(n, fmt.Sprintf("%q is an override, not a rule", name), "use override")
	case rule == nil && !limits && r.known.limits[name] != nil:
		r.AddAt(n, fmt.Sprintf("%q is a limit, not a rule", name), fmt.Sprintf("write %q", r.known.limits[name].Name))
	case rule == nil:
		shown, rest := parse.Cut(name)
		r.AddAt(n, fmt.Sprintf("no rule is named %q%s", shown, rest), parse.Nearest(name, names))
	case rule.Mode == policy.ModeOff:
		r.AddAt(n, fmt.Sprintf("rule %q is off: it decides nothing", rule.Name), "")
	case of != claimWouldDeny && rule.Mode == policy.ModeShadow:
		r.AddAt(n, fmt.Sprintf("rule %q is in shadow: it decides nothing", rule.Name), "use would_deny")
	case of == claimWouldDeny && rule.Mode == policy.ModeEnforce && !r.known.shadow:
		r.AddAt(n, fmt.Sprintf("rule %q is not in shadow", rule.Name), "use denied")
	default:
		return true
	}
	return false
}

// readWord reads one of words, or "none", for which it returns "".
func (r *reader) readWord(n *parse.Node, what string, words []string) *string {
	switch text, ok := r.String(n, what, maxTestValueBytes); {
	case !ok:
		return nil
	case text == "none" && !slices.Contains(words, text):
		return new(string)
	case !slices.Contains(words, text) && !r.known.broken:
		hint := parse.Nearest(text, words)
		if hint == "" && len(words) > 0 && len(words) < 10 {
			hint = "valid values are " + parse.Enumerate(words, "and")
		}
		r.Add(n, fmt.Sprintf("the policy has no such %s", what), hint)
		return nil
	default:
		return &text
	}
}
