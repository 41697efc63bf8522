// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/metehq/mete/policy"
)

// A Set are rows at one revision. It is not safe for concurrent use.
type Set struct {
	// Revision grows with each change of the tables. It is the version of the policy
	// that [Set.Compile] returns.
	Revision int64

	// Rules are the rows by priority and ID, as they are in the policy.
	Rules []Rule

	// Attributes are the names of rate_limit_attribute and what they stand for.
	Attributes map[string]string

	schema string // where they were read; empty if nowhere
}

// translations returns the active rows in the policy language.
func (s *Set) translations() (active []*translation, found Errors) {
	for _, name := range slices.Sorted(maps.Keys(s.Attributes)) {
		if _, err := policy.ParseAttribute(s.Attributes[name]); err != nil {
			reason := strings.TrimPrefix(err.Error(), policy.ErrAttribute.Error()+": ")
			found = append(found, Mistake{Name: name, Column: attributeTable, Reason: reason})
		}
	}
	for i := range s.Rules {
		if s.Rules[i].Active {
			t := vocabulary(s.Attributes).translate(&s.Rules[i])
			active, found = append(active, t), append(found, t.found...)
		}
	}
	return active, found
}

// Compile turns the active rules into a policy. Every mistake is reported at once:
// the error is an [Errors]. That no rule is active is one, as an empty file is: who
// wants no limits says so by a rule in shadow.
func (s *Set) Compile(opts policy.Options) (*policy.Matcher, error) {
	active, found := s.translations()
	if len(active) == 0 {
		reason := "no rule is active"
		if s.schema != "" {
			reason += fmt.Sprintf(" in the schema %q", s.schema)
		}
		return nil, append(found, Mistake{Reason: reason,
			Hint: "insert one with mete rules set or import; to limit nothing, one with the spec {\"mode\": \"shadow\"}"})
	}
	chapters, wrong := chaptersOf(active)
	found = append(found, wrong...)
	for _, c := range chapters {
		groups := groupsOf(c.rules)
		groups.explicit()
	}
	m, err := policy.Load(document(chapters, s.Revision), opts)
	if err == nil && len(found) == 0 {
		return m, nil
	}
	var mistakes policy.Errors
	if err != nil && !errors.As(err, &mistakes) {
		return nil, fmt.Errorf("rules: compile: %w", err)
	}
	before := found
	for _, e := range mistakes {
		if m := placed(chapters, e); !slices.ContainsFunc(before, m.follows) {
			found = append(found, m)
		}
	}
	order := map[int64]int{}
	for i, t := range active {
		order[t.row.ID] = i + 1
	}
	slices.SortStableFunc(found, func(a, b Mistake) int { return order[a.RuleID] - order[b.RuleID] })
	return nil, found
}

// document is the policy of the rules, in JSON.
func document(chapters []*chapter, revision int64) []byte {
	list := make([]object, len(chapters))
	for i, c := range chapters {
		list[i] = object{"id": marshal(c.id()), "spec": marshal(c.spec())}
	}
	return marshal(map[string]any{"bundle_version": max(revision, 1), "policies": list})
}

// placed finds the row and column of a mistake in a document.
func placed(chapters []*chapter, e policy.Error) Mistake {
	m := Mistake{Value: e.Value, Reason: e.Reason, Hint: e.Hint}
	elements := strings.SplitN(e.Path, "/", 7) // "", policies, 0, spec, rules, 0, and what is in the rule
	if len(elements) < 4 || elements[1] != "policies" {
		return m
	}
	i, err := strconv.Atoi(elements[2])
	if err != nil || i < 0 || i >= len(chapters) {
		return m
	}
	t, path := chapters[i].place(elements[3:])
	if t == nil {
		return m
	}
	m.RuleID, m.Name = t.row.ID, t.row.Name
	if path == "" {
		return m
	}
	for field, column := range t.fields {
		if path == field || strings.HasPrefix(path, field+"/") {
			m.Column = column
			return m
		}
	}
	m.Column, m.Path = "spec", "/"+path
	return m
}

// follows reports whether m is a consequence of what was found in a row before: the
// compiler then judges what is left of the row.
func (m Mistake) follows(earlier Mistake) bool {
	return earlier.RuleID == m.RuleID && earlier.Name == m.Name && earlier.Column == m.Column
}
