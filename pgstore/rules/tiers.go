// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"strings"
)

// tiersByPolicy returns the group that each row has to name. Tiers do not reach beyond
// the policy that rows name, and a fallback is of none.
func tiersByPolicy(file []fileRule, rules []*translation) []string {
	members := map[string][]int{}
	for i, t := range rules {
		if !t.last {
			members[t.policy] = append(members[t.policy], i)
		}
	}
	groups := make([]string, len(rules))
	for _, list := range members {
		inFile, tiers := make([]fileRule, len(list)), make([]*translation, len(list))
		for k, i := range list {
			inFile[k], tiers[k] = file[i], rules[i]
		}
		for k, group := range tiersOf(inFile, tiers) {
			groups[list[k]] = group
		}
	}
	return groups
}

// tiersOf returns the group that each row has to name for the rules of a file to be
// tiers as they are in the file: "" where the row is by itself, or where it makes no
// difference.
func tiersOf(file []fileRule, rules []*translation) []string {
	var kinds []string // in the order of the file
	members := map[string][]int{}
	for i, t := range rules {
		kind := file[i].group + " keys:" + strings.Join(t.keys, " ")
		if t.group != "" {
			kind = file[i].group + " group:" + t.group
		}
		if members[kind] == nil {
			kinds = append(kinds, kind)
		}
		members[kind] = append(members[kind], i)
	}
	groups := make([]string, len(rules))
	names := namer{}
	for _, t := range rules {
		names[t.group] = true
	}
	given := map[string]bool{}
	for _, kind := range kinds {
		list := members[kind]
		first := rules[list[0]]
		tiers := make([]*translation, len(list))
		for k, i := range list {
			tiers[k] = rules[i]
		}
		// Rules that keep apart may be of one group or of many. A name of its own is
		// kept, unless it is that which an export would make up.
		if (first.group == "" || isMadeUp(first.group, first.row.Name)) && (len(list) == 1 || sameKeys(tiers) && allApart(tiers)) {
			continue
		}
		name := first.group
		switch {
		case name == "":
			name = names.name(first.row.Name)
		case given[name]: // by another policy of the file
			name = names.name(name)
		}
		given[name] = true
		for _, i := range list {
			groups[i] = name
		}
	}
	return groups
}

// sameKeys reports whether all rules have the same limit_keys.
func sameKeys(rules []*translation) bool {
	return !slices.ContainsFunc(rules, func(t *translation) bool { return !slices.Equal(t.keys, rules[0].keys) })
}

// setApart gives rows a group of their own which the database would else take for
// copies of others. A fallback has none, and says on_missing instead.
func setApart(rows []Rule, groups []string) {
	names := namer{}
	for _, g := range groups {
		names[g] = true
	}
	type plain struct{ pattern, plan string }
	seen := map[plain]bool{}
	for i := range rows {
		spec, err := parseObject(rows[i].Spec)
		if err != nil || spec.has(setsApart...) {
			continue
		}
		key := plain{rows[i].KeyPattern, rows[i].Plan}
		if seen[key] {
			if _, last := membershipOf(spec); last {
				spec.put("on_missing", "skip")
			} else {
				spec.put("group", names.name(rows[i].Name))
			}
			rows[i].Spec = canonical(marshal(spec))
		}
		seen[key] = true
	}
}
