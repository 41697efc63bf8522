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

// A chapter is one policy of a set: its active rows.
type chapter struct {
	id       string
	rows     []*Rule // but for the fallback
	docs     []object
	fallback *Rule // nil for none
}

// chapters returns the policies of the active rows, in the order of their first rows.
func (s *Set) chapters() (list []*chapter, found Errors) {
	byID := map[string]*chapter{}
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
			c = &chapter{id: id}
			list, byID[id] = append(list, c), c
		}
		doc, err := parseObject(r.Spec)
		switch {
		case err != nil:
			found = append(found, Mistake{RuleID: r.ID, Name: r.Name, Path: "spec", Reason: err.Error()})
		case !r.Fallback:
			c.rows, c.docs = append(c.rows, r), append(c.docs, doc)
		case c.fallback == nil:
			c.fallback = r
		default:
			found = append(found, Mistake{RuleID: r.ID, Name: r.Name, Path: "is_fallback",
				Reason: fmt.Sprintf("the fallback of the policy %s is %q already", id, c.fallback.Name)})
		}
	}
	return list, found
}

// setApart gives each rule without a group one of its own, which has its name. A
// policy file has tiers by limit_keys where rules name no group; rows have not.
func (c *chapter) setApart(needed func(doc object) bool) {
	taken := map[string]bool{}
	for _, doc := range c.docs {
		taken[doc.text("group")] = true
	}
	for i, doc := range c.docs {
		if _, named := doc["group"]; !named && needed(doc) {
			group := freeName(c.rows[i].Name, func(name string) bool { return taken[name] })
			taken[group] = true
			doc.put("group", group)
		}
	}
}

// freeName returns a name that begins like the wanted one and is not taken.
func freeName(wanted string, taken func(string) bool) string {
	name := wanted
	for suffix := "'"; taken(name); suffix += "'" {
		name = wanted[:min(len(wanted), policy.MaxNameBytes-len(suffix))] + suffix
	}
	return name
}

// spec returns the policy in the policy language. What the policy itself says stands
// in its document.
func (c *chapter) spec(document json.RawMessage) object {
	spec, _ := parseObject(document) // a constraint sees that it is an object
	if len(c.rows) > 0 || c.fallback == nil {
		spec.put("rules", c.docs)
	}
	if c.fallback != nil {
		spec["fallback_limit"] = c.fallback.Spec
	}
	return spec
}

// Compile turns the active rules into a policy. It reports every mistake at once: the
// error is an [Errors]. A set without an active rule is a mistake, as an empty file
// is. A rule in shadow limits nothing.
func (s *Set) Compile(opts policy.Options) (*policy.Matcher, error) {
	chapters, found := s.chapters()
	if len(chapters) == 0 {
		reason := "no rule is active"
		if s.schema != "" {
			reason += fmt.Sprintf(" in the schema %q", s.schema)
		}
		return nil, Errors{{Reason: reason, Hint: "insert one with mete rules set or import; to limit nothing, one with the mode shadow"}}
	}
	if len(found) > 0 {
		return nil, found
	}
	file, _ := parseObject(s.Policies[""]) // a constraint sees that it is an object
	list := make([]object, len(chapters))
	for i, c := range chapters {
		c.setApart(func(object) bool { return true })
		list[i] = object{"id": marshal(c.id), "spec": marshal(c.spec(s.Policies[c.id]))}
	}
	file.put("policies", list)
	file.put("bundle_version", max(s.Revision, 1))
	m, err := policytest.Load(marshal(file), opts)
	var mistakes policy.Errors
	switch {
	case err == nil:
		return m, nil
	case !errors.As(err, &mistakes):
		return nil, fmt.Errorf("rules: compile: %w", err)
	}
	for _, e := range mistakes {
		found = append(found, placed(chapters, e))
	}
	return nil, found
}

// placed finds the row of a mistake in a policy that Compile has put together: its
// path is /policies/0/spec/rules/0 or /policies/0/spec/fallback_limit, and then the
// path in the rule.
func placed(chapters []*chapter, e policy.Error) Mistake {
	m := Mistake{Value: e.Value, Reason: e.Reason, Hint: e.Hint}
	rest := strings.Split(e.Path, "/")[1:]
	if len(rest) > 2 && rest[0] == "policies" {
		i, _ := strconv.Atoi(rest[1]) // the policy package counts them
		c := chapters[i]
		var row *Rule
		m.Policy, rest = c.id, rest[3:]
		if len(rest) == 0 {
			m.Path = "policy" // the name of it
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
