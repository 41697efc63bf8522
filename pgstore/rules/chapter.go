// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/metehq/mete/policy"
)

// defaultPolicy is the policy of the rows that name none. Names of policies are in no
// key.
const defaultPolicy = "rules"

// A chapter is a policy that rows become. Which one a row is of makes a difference to
// its fallback only, which applies where no other rule of it does.
type chapter struct {
	name     string         // empty is defaultPolicy
	rules    []*translation // but for the fallback
	fallback *translation   // nil for none
	selector object         // of the policy: what match the fallback has; nil for none
}

// chaptersOf puts the rows of each policy together, in the order of their first ones.
func chaptersOf(rows []*translation) (chapters []*chapter, found Errors) {
	index := map[string]*chapter{}
	for _, t := range rows {
		c := index[t.policy]
		if c == nil {
			c = &chapter{name: t.policy}
			chapters, index[t.policy] = append(chapters, c), c
		}
		switch {
		case !t.last:
			c.rules = append(c.rules, t)
		case c.fallback == nil:
			c.fallback = t
		default:
			found = append(found, Mistake{RuleID: t.row.ID, Name: t.row.Name, Column: "spec", Path: "/fallback",
				Reason: fmt.Sprintf("the fallback of the policy %s is %q already", c.id(), c.fallback.row.Name),
				Hint:   `say "policy" in spec of the rules that it is the fallback of`})
		}
	}
	for _, c := range chapters {
		if c.fallback != nil {
			found = append(found, c.narrow()...)
		}
	}
	return chapters, found
}

// id is the name of the policy in a document.
func (c *chapter) id() string {
	if c.name == "" {
		return defaultPolicy
	}
	return c.name
}

// spec is the policy in the policy language.
func (c *chapter) spec() object {
	spec := object{}
	if len(c.rules) > 0 || c.fallback == nil {
		list := make([]object, len(c.rules))
		for i, t := range c.rules {
			list[i] = t.rule
		}
		spec.put("rules", list)
	}
	if c.selector != nil {
		spec.put("selector", c.selector)
	}
	if c.fallback != nil {
		spec.put("fallback_limit", c.fallback.rule)
	}
	return spec
}

// place returns the row that a place in the policy is of, nil for none, and the rest of
// the path.
func (c *chapter) place(elements []string) (t *translation, path string) {
	switch {
	case elements[0] == "id":
		if len(c.rules) > 0 {
			return c.rules[0], "policy"
		}
		return c.fallback, "policy"
	case len(elements) < 2:
		return nil, ""
	case elements[1] == "fallback_limit":
		return c.fallback, strings.Join(elements[2:], "/")
	case elements[1] == "selector" && len(elements) > 2:
		return c.fallback, pointer("match", selectorFields[elements[2]])
	case elements[1] == "rules" && len(elements) > 2:
		if i, err := strconv.Atoi(elements[2]); err == nil && i >= 0 && i < len(c.rules) {
			return c.rules[i], strings.Join(elements[3:], "/")
		}
	}
	return nil, ""
}

// selectorFields are the fields of a selector, and the attributes that they are about.
var selectorFields = map[string]string{"pathExact": "path", "pathPrefix": "path", "methods": "method", "hosts": "host"}

// narrow makes the match of the fallback, which has none in the policy language, the
// selector of its policy. That makes no difference to the other rules where the match
// takes in all that they do.
func (c *chapter) narrow() (found Errors) {
	t := c.fallback
	match, err := parseObject(t.rule["match"])
	delete(t.rule, "match")
	if err != nil || len(match) == 0 {
		return nil // it has been found
	}
	wrong := func(field, reason, hint string) {
		m := Mistake{RuleID: t.row.ID, Name: t.row.Name, Column: "spec", Path: pointer("/match", field), Reason: reason, Hint: hint}
		if column := t.fields[m.Path[1:]]; column != "" {
			m.Column, m.Path = column, ""
		}
		found = append(found, m)
	}
	c.selector = object{}
	for _, field := range slices.Sorted(maps.Keys(match)) {
		attribute, err := policy.Normalize(field)
		values := t.match[attribute]
		if err != nil || values == nil || !slices.Contains([]string{"path", "method", "host"}, attribute) {
			wrong(field, "a fallback matches lists of path, method and host only", "for others write a rule that is the last of its group")
			continue
		}
		if other := slices.IndexFunc(c.rules, func(r *translation) bool {
			return r.match[attribute] == nil || !within(r.match[attribute], values)
		}); other >= 0 {
			wrong(field, fmt.Sprintf("the fallback takes less than the rule %q of its policy", c.rules[other].row.Name),
				"narrow the match of that rule as well, or give it another policy in spec")
			continue
		}
		switch attribute {
		case "path":
			if !c.selectPaths(values) {
				wrong(field, "a fallback takes single paths, and those that begin with segments", "as in /v1/*")
			}
		case "method":
			c.selector["methods"] = match[field]
		case "host":
			c.selector["hosts"] = match[field]
		}
	}
	if len(found) > 0 {
		c.selector = nil
	}
	return found
}

// selectPaths makes values of path a part of the selector.
func (c *chapter) selectPaths(values []string) bool {
	var exact, prefixes []string
	for _, v := range values {
		prefix, star := strings.CutSuffix(v, "*")
		switch {
		case !star:
			exact = append(exact, v)
		case strings.HasSuffix(prefix, "/"):
			prefixes = append(prefixes, prefix)
		default:
			return false
		}
	}
	if exact != nil {
		c.selector.put("pathExact", exact)
	}
	if prefixes != nil {
		c.selector.put("pathPrefix", prefixes)
	}
	return true
}
