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

// hidden stands for what a viewer may not see.
const hidden = "a value that your role does not show"

// clausesOf are the clauses of the selector of a rule's policy, or its own.
func clausesOf(d *policy.Description, selector bool, seesKeys bool) []api.RuleClause {
	clauses := []api.RuleClause{}
	for _, c := range d.Match {
		if c.Selector != selector {
			continue
		}
		wants := c.Wants
		if c.Attribute.Secret() && !seesKeys && strings.Contains(wants, `"`) {
			wants = hidden
		}
		clauses = append(clauses, api.RuleClause{Attribute: c.Attribute.String(), Wants: wants})
	}
	return clauses
}

// exampleOf is a request that falls under the i'th rule.
func exampleOf(m *policy.Matcher, i int, d *policy.Description, seesKeys bool) map[string]string {
	if !seesKeys && slices.ContainsFunc(d.Match, func(c policy.Clause) bool { return c.Attribute.Secret() }) {
		return nil
	}
	example, _ := m.Sample(i)
	return example
}

// generalExceptions are the overrides that are not about single rules.
func generalExceptions(m *policy.Matcher, descriptions []policy.Description, seesKeys bool) []api.RuleOverride {
	of := map[string]bool{}
	for _, d := range descriptions {
		for _, o := range d.Overrides {
			of[o.ID] = true
		}
	}
	list := []api.RuleOverride{}
	for _, o := range m.Overrides() {
		if !of[o.ID] {
			list = append(list, exceptOf(&o, seesKeys))
		}
	}
	return list
}

func exceptOf(o *policy.Override, seesKeys bool) api.RuleOverride {
	return api.RuleOverride{ID: o.ID, Action: string(o.Action), About: about(o, seesKeys), Reason: o.Reason, Author: o.Author, Expires: o.ExpiresAt}
}

// about says which requests an override is about. Whom it is about could be a key, an
// address or a person: who may not see keys sees what a request is for, and no more.
func about(o *policy.Override, seesKeys bool) string {
	if o.Key != "" {
		if seesKeys {
			return o.Key
		}
		key := o.Key
		if _, rest, tagged := strings.Cut(key, "}"); tagged && key[0] == '{' { // a tag is of what may not be seen
			key = rest
		}
		limit, _, _ := strings.Cut(key, ":")
		return limit + ":…"
	}
	var clauses map[string]json.RawMessage
	if len(o.Match) == 0 || json.Unmarshal(o.Match, &clauses) != nil || len(clauses) == 0 {
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
	return strings.Join(parts, ", ")
}

// A lintCache has the warnings about the latest policy. Many requests ask for them, and
// [lint.Check] takes long where a policy has thousands of rules. The zero lintCache is empty.
type lintCache struct {
	mu    sync.Mutex
	of    *policy.Rule // the first rule: overrides make a new matcher of the same rules
	found []policy.Warning
}

// warnings returns the warnings about m.
func (c *lintCache) warnings(m *policy.Matcher) []policy.Warning {
	c.mu.Lock()
	defer c.mu.Unlock()
	if first := m.Rules()[0]; c.of != first {
		c.of, c.found = first, lint.Check(m, time.Now())
	}
	return c.found
}

// warningsOf returns warnings about m, each with its rule.
func warningsOf(m *policy.Matcher, descriptions []policy.Description, warnings []policy.Warning) (list []api.RuleWarning) {
	rules := map[string]string{} // by their paths
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
