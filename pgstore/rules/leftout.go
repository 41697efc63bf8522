// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"bytes"
	"encoding/json"

	"github.com/metehq/mete/policy"
)

// exceptions finds what a policy file has that is no rule, and that changes what is
// decided: it must not be lost.
func exceptions(root object) (found policy.Errors) {
	for _, field := range []string{"overrides", "kill_switches", "global_shadow", "break_glass"} {
		value := bytes.TrimSpace(root[field])
		var state struct {
			Enabled *bool `json:"enabled"`
		}
		switch {
		case len(value) == 0, bytes.Equal(canonical(value), []byte("[]")):
			continue
		case value[0] == '{' && json.Unmarshal(value, &state) == nil && state.Enabled != nil && !*state.Enabled:
			continue
		}
		found = append(found, policy.Error{Path: "/" + field, Reason: field + " are exceptions from rules, and no rows",
			Hint: "remove them from the file; mete override set makes them, and they are in force whatever rules are read from"})
	}
	return found
}

// LeftOut returns the fields of a policy file without mistakes, in JSON, that
// [Set.Import] does not keep, as JSON Pointers. None of them makes a difference to a
// decision.
func LeftOut(data []byte) (paths []string) {
	root, err := parseObject(data)
	if err != nil {
		return nil
	}
	policies, above, err := policiesIn(root)
	if err != nil {
		return nil
	}
	for _, field := range []string{"bundle_version", "issued_at", "expires_at", "description", "tests"} {
		if root.has(field) && (above != nil || field == "tests") {
			paths = append(paths, "/"+field)
		}
	}
	for _, p := range policies {
		if p.spec.has("description") {
			paths = append(paths, p.path+"/description")
		}
	}
	return paths
}
