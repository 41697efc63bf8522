// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
)

// What is done to rules between two policies.
const (
	Added   = "added"
	Removed = "removed"
	Changed = "changed" // it, or what its policy says for all of its rules
)

// Edits compares two policy files in JSON, which compile, and says what was done
// to which of their rules, by name. The rules that say the same have no entry;
// order, descriptions and spelling of numbers do not count.
func Edits(old, new []byte) map[string]string {
	before, after := map[string]any{}, map[string]any{}
	collect(before, decode(old), nil)
	collect(after, decode(new), nil)
	edits := map[string]string{}
	for name, rule := range after {
		switch was, ok := before[name]; {
		case !ok:
			edits[name] = Added
		case !reflect.DeepEqual(was, rule):
			edits[name] = Changed
		}
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			edits[name] = Removed
		}
	}
	return edits
}

// collect finds the rules in a part of a policy file. Whatever stands around the
// list of rules that one is in is part of what it says.
func collect(rules map[string]any, part any, around []any) {
	o, ok := part.(map[string]any)
	if !ok {
		return
	}
	inside, within := false, around
	if says := surroundings(o); len(says) > 0 {
		within = append(slices.Clip(around), says)
	}
	for _, list := range []string{"policies", "spec", "rules"} {
		if _, ok := o[list]; !ok {
			continue
		}
		inside = true
		items, several := o[list].([]any)
		if !several {
			items = []any{o[list]}
		}
		for _, item := range items {
			collect(rules, item, within)
		}
	}
	if inside {
		return
	}
	name, _ := o["name"].(string)
	if name == "" {
		name = "default"
	}
	rule := maps.Clone(o)
	delete(rule, "description")
	rules[name] = append(slices.Clip(around), rule)
}

// surroundings are what an object says beside its rules that is part of what they
// say. Exceptions from rules are not, nor is what only describes them.
func surroundings(o map[string]any) map[string]any {
	rest := maps.Clone(o)
	for _, about := range []string{"policies", "spec", "rules", "id", "description", "tests", "overrides", "kill_switches",
		"kill_switch_override", "global_shadow", "break_glass", "bundle_version", "issued_at", "expires_at", "signature"} {
		delete(rest, about)
	}
	return rest
}

// decode reads JSON. Numbers that are equal become equal.
func decode(text []byte) any {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return nil
	}
	return plain(v)
}

// plain spells all numbers in v alike.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name := range v {
			v[name] = plain(v[name])
		}
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case json.Number:
		if f, err := v.Float64(); err == nil {
			return f
		}
	}
	return v
}
