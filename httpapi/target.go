// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/policy"
)

// A target is the key that the caller wants to see overrides or activity for.
type target struct {
	key    policy.Key
	rule   string            // the rule of the key's limit
	values map[string]string // by attribute name; hashed values are missing
}

// target returns the target for a key or its mask, or nil for an empty key. Only callers that may see keys can
// specify a key, because overrides and activity reveal the key's client.
func (a *API) target(ctx context.Context, r *http.Request, key string) (*target, *api.Problem) {
	if key == "" {
		return nil, nil
	}
	if a.roleOf(r) < RoleOperate {
		return nil, api.NewProblem(http.StatusForbidden, "the parameter key requires the role operate")
	}
	key, p := a.resolveKey(ctx, key)
	if p != nil {
		return nil, p
	}
	t := &target{key: policy.Key(key), rule: policy.Key(key).Limit(), values: map[string]string{}}
	var rule *policy.Rule
	if rules := a.rulesWithLimit(t.rule); len(rules) > 0 {
		t.rule = rules[0]
		rule = a.rules()[t.rule]
	}
	for _, part := range topParts(t.key, rule) {
		if !part.Hashed {
			t.values[part.Name] = part.Value
		}
	}
	return t, nil
}

// hasKey reports whether key is the target, with or without a slot_by tag.
func (t *target) hasKey(key string) bool {
	k := policy.Key(key)
	return k.Limit() == t.key.Limit() && k.Components() == t.key.Components()
}

// matchKind returns how an override matches the target: "key" for the key alone, "match" together with others, or
// "all". It returns "" if the override does not match, or if it needs attributes that the key does not contain.
func (t *target) matchKind(o *api.Override) string {
	if o == nil || len(o.Rules) > 0 && !slices.Contains(o.Rules, t.rule) {
		return ""
	}
	if o.Key != "" { // a key covers the client under all limits of the rule
		k := policy.Key(o.Key)
		if k.Components() == t.key.Components() && (k.Limit() == t.rule || strings.HasPrefix(k.Limit(), t.rule+"/")) {
			return "key"
		}
		return ""
	}
	var clauses map[string]any
	if len(o.Match) > 0 {
		d := json.NewDecoder(bytes.NewReader(o.Match))
		d.UseNumber() // a match compares the text of a number
		if d.Decode(&clauses) != nil {
			return ""
		}
	}
	for name, wanted := range clauses {
		if value, known := t.values[name]; !known || !clauseMatches(wanted, value) {
			return ""
		}
	}
	if len(clauses) == 0 {
		return "all"
	}
	return "match"
}

func clauseMatches(wanted any, value string) bool {
	switch wanted := wanted.(type) {
	case []any:
		return slices.ContainsFunc(wanted, func(w any) bool { return clauseMatches(w, value) })
	case map[string]any:
		return !clauseMatches(wanted["not"], value)
	}
	text := fmt.Sprint(wanted)
	if begin, ok := strings.CutSuffix(text, "*"); ok {
		return strings.HasPrefix(value, begin)
	}
	return value == text
}

func (t *target) matchesEntry(e *api.AuditEntry) bool {
	if e.Key != "" {
		return t.hasKey(e.Key)
	}
	return t.matchKind(e.After) != "" || t.matchKind(e.Before) != ""
}
