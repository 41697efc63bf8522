// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policy/lint"
)

const hidden = "a value that your role does not show"

// selectorOf returns the clauses of the selector of the rule's policy. All alternatives begin with them.
func selectorOf(d *policy.Description, seesKeys bool) []api.RuleClause {
	return clausesOf(d.Match[0], true, seesKeys)
}

// matchOf returns the alternatives of the rule's match without the selector. It returns none if an alternative matches
// all requests.
func matchOf(d *policy.Description, seesKeys bool) [][]api.RuleClause {
	match := [][]api.RuleClause{}
	for _, list := range d.Match {
		clauses := clausesOf(list, false, seesKeys)
		if len(clauses) == 0 {
			return [][]api.RuleClause{}
		}
		match = append(match, clauses)
	}
	return match
}

// clausesOf returns the clauses that are, or are not, from the selector.
func clausesOf(list []policy.Clause, selector bool, seesKeys bool) []api.RuleClause {
	clauses := []api.RuleClause{}
	for _, c := range list {
		if c.Selector != selector {
			continue
		}
		wants := c.Wants
		if c.Attribute.IsSecret() && !seesKeys && strings.Contains(wants, `"`) {
			wants = hidden
		}
		clauses = append(clauses, api.RuleClause{Attribute: c.Attribute.String(), Wants: wants})
	}
	return clauses
}

func exampleOf(m *policy.Matcher, i int, d *policy.Description, seesKeys bool) map[string]string {
	if !seesKeys && slices.ContainsFunc(slices.Concat(d.Match...), func(c policy.Clause) bool { return c.Attribute.IsSecret() }) {
		return nil
	}
	example, _ := m.Sample(i)
	return example
}

func globalOverrides(m *policy.Matcher, descriptions []policy.Description, seesKeys bool) []api.RuleOverride {
	of := map[string]bool{}
	for _, d := range descriptions {
		for _, o := range d.Overrides {
			of[o.ID] = true
		}
	}
	list := []api.RuleOverride{}
	for _, o := range m.Overrides() {
		if !of[o.ID] {
			list = append(list, ruleOverrideOf(&o, seesKeys))
		}
	}
	return list
}

func ruleOverrideOf(o *policy.Override, seesKeys bool) api.RuleOverride {
	return api.RuleOverride{ID: o.ID, Action: string(o.Action), About: describeMatch(o, seesKeys), Reason: o.Reason, Author: o.Author, Expires: o.ExpiresAt}
}

// describeMatch describes the requests that an override matches. Keys, addresses and users are hidden from
// callers that may not see keys.
func describeMatch(o *policy.Override, seesKeys bool) string {
	if o.Key != "" {
		if seesKeys {
			return o.Key
		}
		key := o.Key
		if _, rest, tagged := strings.Cut(key, "}"); tagged && key[0] == '{' { // the tag contains hidden values
			key = rest
		}
		limit, _, _ := strings.Cut(key, ":")
		return limit + ":…"
	}
	var alternatives []map[string]json.RawMessage
	if json.Unmarshal(o.Match, &alternatives) != nil {
		var clauses map[string]json.RawMessage
		if len(o.Match) == 0 || json.Unmarshal(o.Match, &clauses) != nil {
			return "all requests"
		}
		alternatives = append(alternatives, clauses)
	}
	texts := make([]string, len(alternatives))
	for i, clauses := range alternatives {
		if len(clauses) == 0 {
			return "all requests"
		}
		parts := make([]string, 0, len(clauses))
		for _, name := range slices.Sorted(maps.Keys(clauses)) {
			value := string(clauses[name])
			if !seesKeys && name != "method" && name != "path" && name != "host" {
				value = "…"
			}
			parts = append(parts, name+" "+value)
		}
		texts[i] = strings.Join(parts, ", ")
	}
	return strings.Join(texts, "; or ")
}

// A lintCache caches the warnings about the current policy. [lint.Check] is slow for thousands of rules, and many
// requests need the result. The zero lintCache is empty.
type lintCache struct {
	mu    sync.Mutex
	of    *policy.Rule // first rule: new overrides keep the rules but replace the matcher
	found []policy.Warning
}

func (c *lintCache) warnings(m *policy.Matcher) []policy.Warning {
	c.mu.Lock()
	defer c.mu.Unlock()
	if first := m.Rules()[0]; c.of != first {
		c.of, c.found = first, lint.Check(m, time.Now())
	}
	return c.found
}

func warningsOf(m *policy.Matcher, descriptions []policy.Description, warnings []policy.Warning) (list []api.RuleWarning) {
	rules := map[string]string{} // by path
	for i, r := range m.Rules() {
		rules[descriptions[i].Path] = r.Name
	}
	for _, w := range warnings {
		path, rule := w.Path, rules[w.Path]
		for rule == "" && path != "" {
			path = path[:strings.LastIndexByte(path, '/')]
			rule = rules[path]
		}
		list = append(list, api.RuleWarning{Code: w.Code, Rule: rule, Path: w.Path, Reason: w.Reason, Hint: w.Hint, Note: lint.KindOf(w).Note})
	}
	return list
}
