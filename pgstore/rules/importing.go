// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/metehq/mete/policy"
)

// Import makes the rules of a policy file, in JSON, rows of s: those that have the
// name of a row change it, the others are added, all are active. A row that means the
// same already stays as it is. With replace, rows that are not in the file are made
// inactive. The file must be without mistakes, and have nothing in it that rows cannot
// say and that makes a difference to a decision, such as overrides: the error is a
// [policy.Errors]. What it has else is left out: see [LeftOut].
//
// A row keeps its priority, unless the order of the file is another: then the rules
// of the file are numbered anew.
func (s *Set) Import(data []byte, replace bool) error {
	m, err := policy.Load(data, policy.Options{})
	if err != nil {
		return err
	}
	if strings.Contains(strings.ReplaceAll(string(canonical(data)), `\\`, ""), `\u0000`) {
		return errors.New("rules: import: PostgreSQL has no text with a zero character, and so the rules must have none")
	}
	file, err := readFile(data, m)
	if err != nil {
		return err
	}
	rows := vocabulary(s.Attributes).rows(file)
	index := map[string]int{}
	for i := range s.Rules {
		index[s.Rules[i].Name] = i
	}
	places, named := make([]int, 0, len(rows)), map[int]bool{}
	for _, row := range rows {
		i, there := index[row.Name]
		if !there {
			i = len(s.Rules)
			s.Rules = append(s.Rules, row)
		} else {
			s.merge(&s.Rules[i], row)
		}
		places, named[i] = append(places, i), true
	}
	s.order(places)
	if replace {
		for i := range s.Rules {
			s.Rules[i].Active = s.Rules[i].Active && named[i]
		}
	}
	return nil
}

// merge makes a row say what another does, in its own words where it does so already.
func (s *Set) merge(row *Rule, wanted Rule) {
	wanted.ID, wanted.Priority, wanted.Version = row.ID, row.Priority, row.Version
	wanted.CreatedAt, wanted.UpdatedAt = row.CreatedAt, row.UpdatedAt
	v := vocabulary(s.Attributes)
	if t := v.translate(row); len(t.found) == 0 {
		same := Rule{Name: row.Name, Description: row.Description, Priority: row.Priority, Active: true}
		if v.row(&same, t); same.sameRow(&wanted) {
			row.Active = true
			return
		}
	}
	*row = wanted
}

// order gives the rules at these places priorities, unless they are in order: that of
// the policy which they are compiled to.
func (s *Set) order(places []int) {
	before := func(i, j int) int {
		a, b := &s.Rules[i], &s.Rules[j]
		switch {
		case a.Priority != b.Priority || a.ID != 0 && b.ID != 0:
			return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.ID, b.ID))
		case a.ID == 0 && b.ID == 0: // IDs grow in the order of the insertions
			return i - j
		case a.ID == 0:
			return 1
		}
		return -1
	}
	rows := slices.SortedStableFunc(slices.Values(places), before)
	order := make([]int, 0, len(places)) // of places, by policy
	var policies []string
	byPolicy, fallbacks := map[string][]int{}, map[string][]int{}
	for _, i := range rows {
		spec, _ := parseObject(s.Rules[i].Spec) // without one it is of the default policy
		name, last := membershipOf(spec)
		if byPolicy[name] == nil && fallbacks[name] == nil {
			policies = append(policies, name)
		}
		if last {
			fallbacks[name] = append(fallbacks[name], i)
		} else {
			byPolicy[name] = append(byPolicy[name], i)
		}
	}
	for _, name := range policies {
		order = append(append(order, byPolicy[name]...), fallbacks[name]...)
	}
	if slices.Equal(order, places) {
		return
	}
	for n, i := range places {
		s.Rules[i].Priority = int32(10 * (n + 1))
	}
}

// rows turns the rules of a file into rows.
func (v vocabulary) rows(file []fileRule) []Rule {
	rows := make([]Rule, len(file))
	translations := make([]*translation, len(file))
	for i, f := range file {
		t := &translation{row: &rows[i], rule: f.rule, group: f.rule.text("group"), policy: f.policy, last: f.fallback}
		rows[i] = Rule{Name: f.rule.text("name"), Description: f.rule.text("description"), Active: true}
		t.readKeys()
		t.readMatch()
		translations[i] = t
	}
	groups := tiersByPolicy(file, translations)
	for i, t := range translations {
		delete(t.rule, "group")
		if groups[i] != "" {
			t.rule.put("group", groups[i])
		}
		v.row(&rows[i], t)
	}
	setApart(rows, groups)
	return rows
}
