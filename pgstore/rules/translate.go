// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/metehq/mete/policy"
)

var escaper = strings.NewReplacer("~", "~0", "/", "~1")

// A translation is a row in the policy language.
type translation struct {
	row    *Rule
	rule   object
	keys   []string            // of limit_keys, sorted; nil where they cannot be read
	match  map[string][]string // the clauses by attribute, that are lists of text; ends in * for prefixes
	group  string              // that the spec names
	policy string              // that the spec names; empty is the one of those that name none
	last   bool                // it is the fallback of its policy
	fields map[string]string   // which column a field of rule is from, where it is not spec
	found  []Mistake
}

// translate turns a row into a rule of the policy language. What is wrong with the
// rest of it the compiler finds.
func (v vocabulary) translate(row *Rule) *translation {
	t := &translation{row: row, fields: map[string]string{"name": "name", "description": "description"}}
	spec, err := parseObject(row.Spec)
	if err != nil {
		t.mistake("spec", err.Error(), "")
		spec = object{}
	}
	t.rule = spec
	for _, field := range []string{"name", "description"} {
		if spec.has(field) {
			t.mistake("spec", fmt.Sprintf("field %q is a column of its own", field), "remove it from spec")
		}
	}
	t.rule.put("name", row.Name)
	if row.Description != "" {
		t.rule.put("description", row.Description)
	}
	t.group = t.rule.text("group")
	t.membership()
	v.pattern(t)
	t.numbers()
	t.readKeys()
	t.readMatch()
	return t
}

// membership reads of which policy the row is, and whether it is the fallback of that.
func (t *translation) membership() {
	if value, ok := t.rule["policy"]; ok {
		t.policy = t.rule.text("policy")
		if t.policy == "" {
			t.mistake("spec", "policy must be the name of one (got "+string(value)+")", "without one, a row is of the policy "+defaultPolicy)
		}
		if t.policy == defaultPolicy {
			t.policy = ""
		}
	}
	if value, ok := t.rule["fallback"]; ok && json.Unmarshal(value, &t.last) != nil {
		t.mistake("spec", "fallback must be true or false (got "+string(value)+")", "")
	}
	delete(t.rule, "policy")
	delete(t.rule, "fallback")
}

// membershipOf reads the same of a spec without mistakes.
func membershipOf(spec object) (policy string, last bool) {
	t := translation{row: &Rule{}, rule: maps.Clone(spec)}
	t.membership()
	return t.policy, t.last
}

func (t *translation) mistake(column, reason, hint string) {
	t.found = append(t.found, Mistake{RuleID: t.row.ID, Name: t.row.Name, Column: column, Reason: reason, Hint: hint})
}

// pattern translates key_pattern and plan to limit_keys and match.
func (v vocabulary) pattern(t *translation) {
	p, wrong := v.parsePattern(t.row.KeyPattern)
	if wrong != nil {
		t.mistake("key_pattern", wrong.reason, wrong.hint)
	}
	switch custom := t.row.KeyPattern == patternCustom; {
	case !custom && t.rule.has("limit_keys"):
		t.mistake("spec", "the key_pattern says limit_keys already", "remove them from spec, or let key_pattern be custom")
	case custom && !t.rule.has("limit_keys"):
		t.mistake("spec", "limit_keys are missing, as key_pattern is custom", "")
	}
	if t.row.KeyPattern != patternCustom {
		t.rule.put("limit_keys", append([]string{}, p.keys...))
		t.fields["limit_keys"] = "key_pattern"
	}
	clauses := p.match
	if t.row.Plan != "" {
		a, wrong := v.attribute("plan")
		if wrong != nil {
			t.mistake("plan", wrong.reason, "insert into "+attributeTable+" what plan stands for")
		} else {
			clauses = append(clauses, literal{a, t.row.Plan})
		}
	}
	if len(clauses) == 0 {
		return
	}
	match, err := parseObject(t.rule["match"])
	if err != nil {
		t.mistake("spec", "match "+err.Error(), "")
		return
	}
	for i, c := range clauses {
		column := "key_pattern"
		if i == len(p.match) {
			column = "plan"
		}
		if match.has(c.attribute) {
			t.mistake(column, fmt.Sprintf("%s is matched twice, here and in the key_pattern or spec", c.attribute), "say it once")
			continue
		}
		match.put(c.attribute, c.value)
		t.fields[pointer("match", c.attribute)] = column
	}
	t.rule.put("match", match)
}

// rateFields are the fields of a limit that say its rate, in the order in which they
// count.
var rateFields = []string{"tokens_per_second", "rps", "rate"}

// numbers translates rate_per_second and burst_capacity.
func (t *translation) numbers() {
	if t.row.RatePerSecond == "" && t.row.BurstCapacity == "" {
		return
	}
	config, err := parseObject(t.rule["algorithm_config"])
	switch {
	case err != nil:
		t.mistake("spec", "algorithm_config "+err.Error(), "")
		return
	case t.rule.has("limits", "algorithm") || config.has(rateFields...) || config.has("burst"):
		t.mistake("spec", "rate_per_second and burst_capacity say the limit already, a token_bucket",
			"remove it from spec, or let both columns be NULL")
	}
	for _, n := range []struct{ column, value, field string }{
		{"rate_per_second", t.row.RatePerSecond, "rps"}, {"burst_capacity", t.row.BurstCapacity, "burst"},
	} {
		t.fields[pointer("algorithm_config", n.field)] = n.column
		if plain, ok := plainDecimal(n.value); ok {
			config[n.field] = json.RawMessage(plain)
		} else if n.value != "" {
			t.mistake(n.column, "must be a decimal number, and a short one", "")
		}
	}
	t.rule.put("algorithm_config", config)
}

// readKeys notes the limit_keys, where they are sound.
func (t *translation) readKeys() {
	var names []string
	if json.Unmarshal(t.rule["limit_keys"], &names) != nil {
		return
	}
	keys := []string{}
	for _, name := range names {
		a, err := policy.ParseAttribute(name)
		if err != nil {
			return
		}
		keys = append(keys, a.Spelled())
	}
	slices.Sort(keys)
	t.keys = keys
}

// readMatch notes the clauses that list values.
func (t *translation) readMatch() {
	match, err := parseObject(t.rule["match"])
	if err != nil {
		return
	}
	t.match = map[string][]string{}
	for name, value := range match {
		a, err := policy.ParseAttribute(name)
		if err != nil || a.Source == policy.SourceIP {
			continue // networks overlap in ways of their own
		}
		if values, ok := listed(value, a.Source); ok {
			t.match[a.String()] = values
		}
	}
}

// listed returns the values that a clause lists, a prefix with a star at its end. It
// is false where it says anything else.
func listed(value json.RawMessage, source policy.Source) ([]string, bool) {
	var list []json.RawMessage // Unmarshal would write into what is there
	switch {
	case !bytes.HasPrefix(value, []byte("[")):
		list = []json.RawMessage{value}
	case json.Unmarshal(value, &list) != nil:
		return nil, false
	}
	values := make([]string, len(list))
	for i, item := range list {
		text, ok := clauseText(item)
		if !ok {
			return nil, false
		}
		switch source {
		case policy.SourceHost:
			text = strings.ToLower(text)
		case policy.SourceMethod:
			text = strings.ToUpper(text)
		}
		values[i] = text
	}
	return values, true
}

// clauseText returns one value of a clause as text: numbers and booleans are
// compared as they are written.
func clauseText(item json.RawMessage) (string, bool) {
	var s string
	switch {
	case len(item) == 0 || item[0] == '{' || item[0] == '[' || item[0] == 'n':
		return "", false
	case item[0] != '"':
		return string(item), true
	}
	return s, json.Unmarshal(item, &s) == nil
}
