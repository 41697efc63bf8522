// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"encoding/json"
	"strconv"
)

// A fileRule is a rule of a policy file, with what the file around it says of it.
type fileRule struct {
	rule  object
	group string // which tells tiers apart; not a name
}

// readFile takes a policy file apart, which has no mistakes.
func readFile(data []byte) ([]fileRule, error) {
	root, err := parseObject(data)
	if err != nil {
		return nil, err
	}
	var rules []fileRule
	switch {
	case root.has("policies"):
		var policies []struct{ Spec object }
		if err := json.Unmarshal(root["policies"], &policies); err != nil {
			return nil, err
		}
		for i, p := range policies {
			if rules, err = readPolicy(rules, p.Spec, root["slot_by"], i); err != nil {
				return nil, err
			}
		}
		return rules, nil
	case root.has("spec"):
		spec, err := parseObject(root["spec"])
		if err != nil {
			return nil, err
		}
		return readPolicy(nil, spec, nil, 0)
	case root.has("rules"):
		return readPolicy(nil, root, nil, 0)
	}
	if !root.has("name") && !root.has("limit_keys") {
		root.put("name", "default")
		root.put("limit_keys", []string{})
	}
	return []fileRule{{rule: root}}, nil
}

// readPolicy appends the rules of the i'th policy.
func readPolicy(rules []fileRule, p object, slotBy json.RawMessage, i int) ([]fileRule, error) {
	var list []object
	if err := json.Unmarshal(p["rules"], &list); err != nil {
		return nil, err
	}
	if p.has("slot_by") {
		slotBy = p["slot_by"]
	}
	for _, rule := range list {
		if p.text("mode") == "shadow" {
			rule.put("mode", "shadow")
		}
		if slotBy != nil && !rule.has("slot_by") {
			rule["slot_by"] = slotBy
		}
		rules = append(rules, fileRule{rule, strconv.Itoa(i)})
	}
	return rules, nil
}
