// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"encoding/json"
	"fmt"

	"github.com/metehq/mete/policy"
)

// A fileRule is a rule of a policy file, with what the file around it says of it.
type fileRule struct {
	rule     object
	group    string // which tells tiers apart; not a name
	policy   string // that its row names
	fallback bool
}

// A filePolicy is a policy of a file.
type filePolicy struct {
	spec object
	path string // to it
	name string // that its rows have
}

// readFile takes a policy file apart, which has no mistakes: m is what it compiles to.
// Where rows cannot say what the file does, the error is a [policy.Errors].
func readFile(data []byte, m *policy.Matcher) ([]fileRule, error) {
	root, err := parseObject(data)
	if err != nil {
		return nil, err
	}
	found := exceptions(root)
	policies, above, err := policiesIn(root)
	if err != nil {
		return nil, err
	}
	var rules []fileRule
	for i, p := range policies {
		more, wrong, err := p.rules(above, i)
		if err != nil {
			return nil, err
		}
		rules, found = append(rules, more...), append(found, wrong...)
	}
	compiled := m.Rules()
	if len(rules) != len(compiled) {
		return nil, fmt.Errorf("rules: import: %d rules in a file of %d", len(rules), len(compiled)) // cannot be
	}
	for i, r := range compiled {
		rules[i].rule.put("name", r.Name) // the file may leave it out
		rules[i].rule.put("mode", modeOf(r).String())
	}
	if len(found) > 0 {
		return nil, found
	}
	return rules, nil
}

// policiesIn returns the policies of a file in whichever of its shapes, and what is
// above them. Which policy a rule is of makes a difference where one has a
// fallback_limit: rows then name it. That of a file that has no names is the one that
// rows are of which name none.
func policiesIn(root object) (policies []filePolicy, above object, err error) {
	switch {
	case root.has("policies"):
		var list []struct {
			ID   string `json:"id"`
			Spec object `json:"spec"`
		}
		if err := json.Unmarshal(root["policies"], &list); err != nil {
			return nil, nil, err
		}
		named := false
		for i, p := range list {
			policies = append(policies, filePolicy{p.Spec, pointer("", "policies", i, "spec"), p.ID})
			named = named || p.Spec.has("fallback_limit")
		}
		for i := range policies {
			if !named || policies[i].name == defaultPolicy {
				policies[i].name = ""
			}
		}
		return policies, root, nil
	case root.has("spec"):
		spec, err := parseObject(root["spec"])
		p := filePolicy{spec: spec, path: "/spec"}
		if id := root.text("id"); spec.has("fallback_limit") && id != defaultPolicy {
			p.name = id
		}
		return []filePolicy{p}, nil, err
	case root.has("rules", "fallback_limit"):
		return []filePolicy{{spec: root}}, nil, nil
	}
	if !root.has("name") && !root.has("limit_keys") {
		root.put("limit_keys", []string{})
	}
	return []filePolicy{{spec: object{"rules": marshal([]object{root})}}}, nil, nil
}

// inherited are the fields that a bundle says for its policies, and a policy for its
// rules, where those do not say otherwise.
var inherited = []string{"slot_by", "headers", "jitter"}

// rules returns the rules of the i'th policy. What they cannot say that it does is
// found.
func (p *filePolicy) rules(above object, i int) (rules []fileRule, found policy.Errors, err error) {
	var list []object
	if p.spec.has("rules") {
		if err := json.Unmarshal(p.spec["rules"], &list); err != nil {
			return nil, nil, err
		}
	}
	selected, err := p.selector()
	if err != nil {
		return nil, nil, err
	}
	paths := make([]string, len(list))
	for k := range list {
		paths[k] = pointer(p.path, "rules", k)
	}
	if p.spec.has("fallback_limit") {
		fallback, err := parseObject(p.spec["fallback_limit"])
		if err != nil {
			return nil, nil, err
		}
		if !fallback.has("limit_keys") {
			fallback.put("limit_keys", []string{})
		}
		list, paths = append(list, fallback), append(paths, p.path+"/fallback_limit")
	}
	for k, rule := range list {
		for _, field := range inherited {
			for _, from := range []object{p.spec, above} {
				if from.has(field) && !rule.has(field) {
					rule[field] = from[field]
				}
			}
		}
		found = append(found, selected.narrow(rule, paths[k])...)
		rules = append(rules, fileRule{rule: rule, group: fmt.Sprint(i), policy: p.name, fallback: p.spec.has("fallback_limit") && k == len(list)-1})
	}
	return rules, found, nil
}
