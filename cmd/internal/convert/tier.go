// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/metehq/mete/policyyaml"
)

const unreachable = "can never match"

// dropUnreachable removes rules that never apply because earlier tiers take all their requests. The policy
// language rejects such rules, and the gateway never applies these limits either.
func (r *Result) dropUnreachable() error {
	separateRules(r.Rules)
	for len(r.Rules) > 0 {
		text, err := r.PolicyJSON()
		if err != nil {
			return err
		}
		_, err = policyyaml.Load(text, checkOptions)
		var found policyyaml.Errors
		if !errors.As(err, &found) {
			return nil
		}
		drop := map[int]bool{}
		for _, mistake := range found {
			index, isRule := strings.CutPrefix(mistake.Path, "/rules/")
			if n, err := strconv.Atoi(index); isRule && err == nil && strings.Contains(mistake.Reason, unreachable) {
				drop[n] = true
			}
		}
		if len(drop) == 0 {
			return nil // Convert reports the other errors
		}
		var kept []Rule
		for i, rule := range r.Rules {
			switch {
			case !drop[i]:
				kept = append(kept, rule)
			case rule.at != "":
				r.Differ(rule.at, fmt.Sprintf("Earlier limits take all requests of the limit %s.", rule.Name), "mete has no rule for it. It would never apply.", "")
			}
		}
		r.Rules = kept
	}
	return nil
}

// allIn reports whether a clause with values implies another clause.
func allIn(values, clause any) bool {
	own, patterns := valuesOf(values), valuesOf(clause)
	for _, value := range own {
		if !slices.ContainsFunc(patterns, func(pattern string) bool {
			prefix, wildcard := strings.CutSuffix(pattern, "*")
			return pattern == value || wildcard && strings.HasPrefix(value, prefix)
		}) {
			return false
		}
	}
	return len(own) > 0
}

// valuesOf returns the values of a clause, or nil for other forms of clauses.
func valuesOf(clause any) []string {
	switch v := clause.(type) {
	case string:
		return []string{v}
	case []string:
		return v
	}
	return nil
}

// byAddress returns a tier that follows rule and counts requests without the attribute by address.
func byAddress(rules []Rule, rule Rule, attribute string) Rule {
	rule.Name = ruleName(rules, rule.Name+"-by-address")
	rule.LimitKeys = []string{"ip:address"}
	rule.Match = maps.Clone(rule.Match)
	if rule.Match == nil {
		rule.Match = map[string]any{}
	}
	rule.Match[attribute] = Not("*")
	return rule
}

// setLimits sets one or several limits of a rule. Each has a name, an algorithm and its fields.
func (r *Rule) setLimits(limits []map[string]any) {
	if len(limits) > 1 {
		r.Limits = limits
		return
	}
	r.Config = maps.Clone(limits[0])
	r.Algorithm, _ = r.Config["algorithm"].(string)
	delete(r.Config, "algorithm")
	delete(r.Config, "name")
}

// mergeMatches returns the match for all requests that any of the matches includes. The matches may differ in one
// attribute only, because a match is a conjunction.
func mergeMatches(matches []map[string]any) (merged map[string]any, ok bool) {
	merged = maps.Clone(matches[0])
	for _, m := range matches[1:] {
		var differ []string
		for _, attribute := range slices.Sorted(maps.Keys(merged)) {
			if !reflect.DeepEqual(merged[attribute], m[attribute]) {
				differ = append(differ, attribute)
			}
		}
		for attribute := range m {
			if _, both := merged[attribute]; !both {
				differ = append(differ, attribute)
			}
		}
		switch {
		case len(differ) == 0:
			continue
		case len(differ) > 1:
			return nil, false
		}
		attribute := differ[0]
		a, inMerged := merged[attribute]
		b, inOther := m[attribute]
		if !inMerged || !inOther {
			delete(merged, attribute) // one of the matches includes all values
			continue
		}
		values := slices.Concat(valuesOf(a), valuesOf(b))
		slices.Sort(values)
		merged[attribute] = oneOrMore(slices.Compact(values))
	}
	return merged, true
}
