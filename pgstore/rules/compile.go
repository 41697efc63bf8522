// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policytest"
)

// A policyRows holds the active rows of one policy.
type policyRows struct {
	id       string
	rows     []*Rule // without the fallback
	docs     []object
	fallback *Rule // nil if there is none
}

// policies groups the active rows by policy, in the order of the first row of each.
func (s *Set) policies() (list []*policyRows, found Errors) {
	byID := map[string]*policyRows{}
	for i := range s.Rules {
		r := &s.Rules[i]
		if !r.Active {
			continue
		}
		id := r.Policy
		if id == "" {
			id = DefaultPolicy
		}
		c := byID[id]
		if c == nil {
			c = &policyRows{id: id}
			list, byID[id] = append(list, c), c
		}
		doc, err := parseObject(r.Spec)
		switch {
		case err != nil:
			found = append(found, Error{RuleID: r.ID, Name: r.Name, Path: "spec", Reason: err.Error()})
		case !r.Fallback:
			c.rows, c.docs = append(c.rows, r), append(c.docs, doc)
		case c.fallback == nil:
			c.fallback = r
		default:
			found = append(found, Error{RuleID: r.ID, Name: r.Name, Path: "is_fallback",
				Reason: fmt.Sprintf("policy %s already has the fallback %q", id, c.fallback.Name)})
		}
	}
	return list, found
}

// addGroups gives each rule without a group its own group, named after the rule. Rows form tiers only by groups,
// but in a policy file, rules with the same limit_keys are tiers, too. Rules with one bucket have one group.
func (c *policyRows) addGroups(needed func(doc object) bool) {
	taken := map[string]bool{}
	for _, doc := range c.docs {
		taken[doc.text("group")] = true
	}
	shared := map[string]string{} // the groups of rules with one bucket
	for i, doc := range c.docs {
		if _, named := doc["group"]; named || !needed(doc) {
			continue
		}
		bucket := doc.text("bucket")
		group := shared[bucket]
		if group == "" || bucket == "" {
			group = freeName(c.rows[i].Name, func(name string) bool { return taken[name] })
			taken[group], shared[bucket] = true, group
		}
		doc.set("group", group)
	}
}

// freeName returns the wanted name, or a similar one that is not taken.
func freeName(wanted string, taken func(string) bool) string {
	name := wanted
	for suffix := "'"; taken(name); suffix += "'" {
		name = wanted[:min(len(wanted), policy.MaxNameBytes-len(suffix))] + suffix
	}
	return name
}

// buildSpec returns the policy in the policy language. The document holds the policy's own fields.
func (c *policyRows) buildSpec(document json.RawMessage) object {
	spec, _ := parseObject(document) // a CHECK constraint verified that it is an object
	if len(c.rows) > 0 || c.fallback == nil {
		spec.set("rules", c.docs)
	}
	if c.fallback != nil {
		spec["fallback_limit"] = c.fallback.Spec
	}
	return spec
}

// Compile compiles the active rules into a policy. The error is an [Errors] that lists all errors of the rows. A
// set without an active rule is an error, like an empty file. To limit nothing, use a rule in shadow mode.
func (s *Set) Compile(opts policy.Options) (*policy.Matcher, error) {
	byPolicy, found := s.policies()
	if len(byPolicy) == 0 {
		reason := "no active rule"
		if s.schema != "" {
			reason += fmt.Sprintf(" in the schema %q", s.schema)
		}
		return nil, Errors{{Reason: reason, Hint: "add one with mete rules set or mete rules import; to limit nothing, use mode shadow"}}
	}
	if len(found) > 0 {
		return nil, found
	}
	file, _ := parseObject(s.Policies[""]) // a CHECK constraint verified that it is an object
	list := make([]object, len(byPolicy))
	for i, c := range byPolicy {
		c.addGroups(func(object) bool { return true })
		list[i] = object{"id": marshal(c.id), "spec": marshal(c.buildSpec(s.Policies[c.id]))}
	}
	file.set("policies", list)
	file.set("bundle_version", max(s.Revision, 1))
	m, err := policytest.Load(marshal(file), opts)
	var mistakes policy.Errors
	switch {
	case err == nil:
		return m, nil
	case !errors.As(err, &mistakes):
		return nil, fmt.Errorf("rules: compile: %w", err)
	}
	for _, e := range mistakes {
		found = append(found, locateError(byPolicy, e))
	}
	return nil, found
}

// locateError finds the row of an error. The error's path in the compiled policy is /policies/0/spec/rules/0 or
// /policies/0/spec/fallback_limit, followed by the path in the rule.
func locateError(byPolicy []*policyRows, e policy.Error) Error {
	m := Error{Value: e.Value, Reason: e.Reason, Hint: e.Hint}
	rest := strings.Split(e.Path, "/")[1:]
	if len(rest) > 2 && rest[0] == "policies" {
		i, _ := strconv.Atoi(rest[1]) // package policy returns valid indexes
		c := byPolicy[i]
		var row *Rule
		m.Policy, rest = c.id, rest[3:]
		if len(rest) == 0 {
			m.Path = "policy" // the policy's name
		} else if rest[0] == "fallback_limit" {
			row, rest = c.fallback, rest[1:]
		} else if rest[0] == "rules" && len(rest) > 1 {
			k, _ := strconv.Atoi(rest[1])
			row, rest = c.rows[k], rest[2:]
		}
		if row != nil {
			m.RuleID, m.Name, m.Policy = row.ID, row.Name, ""
		}
	}
	if len(rest) > 0 {
		m.Path = strings.Join(append([]string{"spec"}, rest...), "/")
	}
	return m
}
