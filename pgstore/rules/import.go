// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policytest"
)

type filePolicy struct {
	ID   string `json:"id"`
	Spec object `json:"spec"`
}

type fileRule struct {
	policy   string
	fallback bool
	doc      object
}

// fileFields are the fields of a single-policy file that are not part of the policy.
var fileFields = []string{"overrides", "kill_switches", "global_shadow", "break_glass", "prices", "tests"}

// versionFields are the fields of a bundle that the revision replaces in the database.
var versionFields = []string{"bundle_version", "issued_at", "expires_at"}

// Import converts a policy file in JSON to rows. A rule with the name of an existing row changes that row, and
// other rules become new rows; all are active. The rest of the file becomes documents in Policies. With replace,
// other rows become inactive, and other fields of the file's policies are removed. The file must be a valid
// policy: the error is a [policy.Errors]. [DroppedFields] returns the fields that Import ignores.
//
// Rows have the limit of a rule in the short form in algorithm_config, where the columns have it, too.
//
// Rows keep their priorities if these match the order of the file. Otherwise, Import renumbers the rules of the
// file.
func (s *Set) Import(data []byte, replace bool) error {
	m, err := policytest.Load(data, policy.Options{})
	if err != nil {
		return err
	}
	data = marshal(textValues(decode(data), false))
	if bytes.Contains(bytes.ReplaceAll(data, []byte(`\\`), nil), []byte(`\u0000`)) {
		return errors.New("rules: import: the rules must not contain a zero character, which PostgreSQL cannot store")
	}
	file, policies, err := splitPolicies(data)
	if err != nil {
		return fmt.Errorf("rules: import: %w", err)
	}
	list := takeRules(policies, slices.DeleteFunc(slices.Clone(m.Rules()), (*policy.Rule).IsGuard)) // guards are in no list of rules
	members := s.nameTiers(list)
	s.importPolicies(append(policies, filePolicy{"", file}), replace)
	index := map[string]int{}
	for i := range s.Rules {
		index[s.Rules[i].Name] = i
	}
	places, inFile := make([]int, len(list)), map[int]bool{}
	for k, f := range list {
		name := f.doc.text("name")
		i, there := index[name]
		if !there {
			i = len(s.Rules)
			s.Rules = append(s.Rules, Rule{Name: name})
		}
		r := &s.Rules[i]
		r.Active, r.Policy, r.Fallback = true, f.policy, f.fallback
		if !sameRule(f.doc, r.Spec, members[f.doc.text("group")] == 1) {
			r.Spec = marshal(f.doc)
		}
		places[k], inFile[i] = i, true
	}
	s.setPriorities(places)
	for i := range s.Rules {
		s.Rules[i].Active = s.Rules[i].Active && (inFile[i] || !replace)
	}
	return nil
}

// splitPolicies returns the policies of a valid file in any of its forms, and the remaining fields.
func splitPolicies(data []byte) (file object, policies []filePolicy, err error) {
	root, err := parseObject(data)
	file = object{}
	switch {
	case err != nil:
		return nil, nil, err
	case root["policies"] != nil:
		err = json.Unmarshal(root["policies"], &policies)
		file = root
		for _, field := range append(versionFields, "policies") {
			delete(file, field)
		}
	case root["spec"] != nil:
		policies = make([]filePolicy, 1)
		err = json.Unmarshal(data, &policies[0])
	default:
		for _, field := range fileFields {
			if value, ok := root[field]; ok {
				file[field] = value
				delete(root, field)
			}
		}
		if root["rules"] == nil && root["fallback_limit"] == nil { // the file is a single rule
			root = object{"rules": marshal([]object{root})}
		}
		policies = []filePolicy{{DefaultPolicy, root}}
	}
	return file, policies, err
}

// takeRules removes the rules from policies and returns them. It takes their names from the compiled rules,
// because the file may omit names.
func takeRules(policies []filePolicy, compiled []*policy.Rule) (list []fileRule) {
	for _, p := range policies {
		var docs []object
		_ = json.Unmarshal(p.Spec["rules"], &docs) // the compiler has read them
		for _, doc := range docs {
			list = append(list, fileRule{p.ID, false, doc})
		}
		if doc, err := parseObject(p.Spec["fallback_limit"]); err == nil && len(doc) > 0 {
			list = append(list, fileRule{p.ID, true, doc})
		}
		delete(p.Spec, "rules")
		delete(p.Spec, "fallback_limit")
	}
	first := map[string]object{} // the first rule with each bucket
	for i, f := range list {
		f.doc.moveLimit()
		if bucket := f.policy + "\n" + f.doc.text("bucket"); f.doc["bucket"] != nil && first[bucket] == nil {
			first[bucket] = f.doc
		} else if f.doc["bucket"] != nil {
			f.doc.repeatLimit(first[bucket])
		}
		f.doc.set("name", compiled[i].Name)
		if f.doc["limit_keys"] == nil && !f.fallback {
			f.doc.set("limit_keys", []string{})
		}
	}
	return list
}

// costFields are the fields of a limit that rules with one bucket have of their own.
var costFields = []string{"cost_source", "cost_key", "fixed_cost", "default_cost", "min_cost", "max_cost", "charge_on"}

// repeatLimit repeats the key and the limit of the first rule with the same bucket, because a row has both itself. A
// rule that has a limit already repeats it in the file.
func (o object) repeatLimit(first object) {
	for _, name := range []string{"limit_keys", "on_missing", "on_full", "slot_by"} {
		if o[name] == nil && first[name] != nil {
			o[name] = first[name]
		}
	}
	costs, _ := parseObject(o["algorithm_config"]) // moveLimit made it, or the compiler has read it
	isCost := func(name string, _ json.RawMessage) bool { return slices.Contains(costFields, name) }
	others := maps.Clone(costs)
	maps.DeleteFunc(others, isCost)
	delete(others, "penalty") // it equals the penalty of the first rule
	if o["limits"] != nil || o["algorithm"] != nil || len(others) > 0 {
		return
	}
	delete(o, "algorithm_config")
	if first["algorithm"] != nil {
		o["algorithm"] = first["algorithm"]
	}
	withCosts := func(config object) object {
		maps.DeleteFunc(config, isCost)
		maps.Copy(config, costs)
		return config
	}
	if config, err := parseObject(first["algorithm_config"]); err == nil && len(config) > 0 {
		o.set("algorithm_config", withCosts(config))
	}
	var limits []object
	_ = json.Unmarshal(first["limits"], &limits) // the compiler has read them
	for i, limit := range limits {
		if config, err := parseObject(limit["algorithm_config"]); err == nil && len(config) > 0 {
			limit.set("algorithm_config", withCosts(config))
		} else {
			limits[i] = withCosts(limit)
		}
	}
	if len(limits) > 0 {
		o.set("limits", limits)
	}
}

// moveLimit moves the fields of a limit that the rule has itself to algorithm_config. A rule in the long form has only
// fields that are for all of its limits, such as penalty.
func (o object) moveLimit() {
	if o["algorithm_config"] != nil || o["limits"] != nil {
		return
	}
	config := object{}
	for _, name := range policy.LimitFields() {
		if value, ok := o[name]; ok {
			config[name] = value
			delete(o, name)
		}
	}
	if len(config) > 0 {
		o.set("algorithm_config", config)
	}
}

// nameTiers gives a group to rules that are tiers because of equal limit_keys, since rows are tiers only by
// groups. It returns the number of rules per group, over all policies.
func (s *Set) nameTiers(list []fileRule) (members map[string]int) {
	members = map[string]int{}
	tiers := map[string][]object{}
	inFile := map[string]bool{}
	for _, f := range list {
		inFile[f.doc.text("name")] = true
		members[f.doc.text("group")]++
		if f.doc["group"] == nil && !f.fallback {
			kind := f.policy + "\n" + keysOf(f.doc)
			tiers[kind] = append(tiers[kind], f.doc)
		}
	}
	for i := range s.Rules {
		if doc, err := parseObject(s.Rules[i].Spec); err == nil && !inFile[s.Rules[i].Name] {
			members[doc.text("group")]++
		}
	}
	for _, f := range list { // in the order of the file, so that names are stable
		docs := tiers[f.policy+"\n"+keysOf(f.doc)]
		if f.doc["group"] == nil && !f.fallback && len(docs) > 1 {
			group := freeName(f.doc.text("name"), func(name string) bool { return members[name] > 0 })
			members[group] = len(docs)
			for _, doc := range docs {
				doc.set("group", group)
			}
		}
	}
	return members
}

func keysOf(doc object) string {
	var names []string
	_ = json.Unmarshal(doc["limit_keys"], &names) // the compiler refuses another type
	for i, name := range names {
		if a, err := policy.ParseAttribute(name); err == nil {
			names[i] = a.Spelling()
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// sameRule reports whether a row equals a rule of a file. A row without a group also equals a rule that is alone in
// a group with its own name.
func sameRule(doc object, row json.RawMessage, alone bool) bool {
	if sameJSON(marshal(doc), row) {
		return true
	}
	old, err := parseObject(row)
	if _, grouped := old["group"]; err != nil || grouped || !alone || strings.TrimRight(doc.text("group"), "'") != doc.text("name") {
		return false
	}
	old["group"] = doc["group"]
	return sameJSON(marshal(doc), marshal(old))
}

// importPolicies sets the fields of a file that are outside of rules. Without replace, other fields stay.
// Policies that are not in the file stay too, because their inactive rules may need them.
func (s *Set) importPolicies(list []filePolicy, replace bool) {
	if s.Policies == nil {
		s.Policies = map[string]json.RawMessage{}
	}
	for _, p := range list {
		spec := object{}
		if !replace {
			spec, _ = parseObject(s.Policies[p.ID]) // a CHECK constraint verified that it is an object
		}
		if maps.Copy(spec, p.Spec); len(spec) > 0 {
			s.Policies[p.ID] = marshal(spec)
		} else {
			delete(s.Policies, p.ID)
		}
	}
}

// setPriorities numbers the rules at these positions, unless their priorities already match the order of the file.
func (s *Set) setPriorities(places []int) {
	rows := make([]Rule, len(places))
	for k, i := range places {
		rows[k] = s.Rules[i]
	}
	slices.SortStableFunc(rows, func(a, b Rule) int {
		id := func(r Rule) uint64 { return uint64(r.ID) - 1 } // new rows have ID 0 and come last
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(id(a), id(b)))
	})
	var names []string
	byPolicy, _ := (&Set{Rules: rows}).policies()
	for _, c := range byPolicy {
		for _, r := range c.rows {
			names = append(names, r.Name)
		}
		if c.fallback != nil {
			names = append(names, c.fallback.Name)
		}
	}
	if slices.EqualFunc(names, places, func(name string, i int) bool { return name == s.Rules[i].Name }) {
		return
	}
	for n, i := range places {
		s.Rules[i].Priority = int32(10 * (n + 1))
	}
}

// DroppedFields returns the fields of a policy file in JSON that [Set.Import] does not keep. These are the version and
// the times of a bundle, which the revision replaces.
func DroppedFields(data []byte) (fields []string) {
	root, err := parseObject(data)
	for _, field := range versionFields {
		if err == nil && root[field] != nil {
			fields = append(fields, "/"+field)
		}
	}
	return fields
}
