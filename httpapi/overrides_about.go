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

// A target is the key that a caller asks about.
type target struct {
	key    policy.Key
	rule   string            // of the key's limit
	values map[string]string // by the attributes' names; hashed values are not known
}

// target returns the target that a caller names by a key or its mask, nil for none. Only
// callers that may see keys may name one: overrides and actions tell of the key's client.
func (a *API) target(ctx context.Context, r *http.Request, key string) (*target, *api.Problem) {
	if key == "" {
		return nil, nil
	}
	if a.roleOf(r) < Operate {
		return nil, api.NewProblem(http.StatusForbidden, "key takes the role operate, which sees keys")
	}
	key, p := a.trueKey(ctx, key)
	if p != nil {
		return nil, p
	}
	t := &target{key: policy.Key(key), rule: policy.Key(key).Limit(), values: map[string]string{}}
	var rule *policy.Rule
	if rules := a.rulesWith(t.rule); len(rules) > 0 {
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

// is reports whether key is the target, with a tag of slot_by or without.
func (t *target) is(key string) bool {
	k := policy.Key(key)
	return k.Limit() == t.key.Limit() && k.Components() == t.key.Components()
}

// about returns how an override takes the target: "key" alone, by a "match" with others, or
// with "all". It is empty for an override that does not take it, or that asks for
// attributes which the key does not show.
func (t *target) about(o *api.Override) string {
	if o == nil || len(o.Rules) > 0 && !slices.Contains(o.Rules, t.rule) {
		return ""
	}
	if o.Key != "" { // it takes the client under all limits of the rule
		k := policy.Key(o.Key)
		if k.Components() == t.key.Components() && (k.Limit() == t.rule || strings.HasPrefix(k.Limit(), t.rule+"/")) {
			return "key"
		}
		return ""
	}
	var clauses map[string]any
	if len(o.Match) > 0 {
		d := json.NewDecoder(bytes.NewReader(o.Match))
		d.UseNumber() // a match takes the text of a number
		if d.Decode(&clauses) != nil {
			return ""
		}
	}
	for name, wanted := range clauses {
		if value, known := t.values[name]; !known || !takes(wanted, value) {
			return ""
		}
	}
	if len(clauses) == 0 {
		return "all"
	}
	return "match"
}

// takes reports whether a clause of a match takes a value.
func takes(wanted any, value string) bool {
	switch wanted := wanted.(type) {
	case []any:
		return slices.ContainsFunc(wanted, func(w any) bool { return takes(w, value) })
	case map[string]any:
		return !takes(wanted["not"], value)
	}
	text := fmt.Sprint(wanted)
	if begin, ok := strings.CutSuffix(text, "*"); ok {
		return strings.HasPrefix(value, begin)
	}
	return value == text
}

// concerns reports whether an entry of the audit applies to the target.
func (t *target) concerns(e *api.AuditEntry) bool {
	if e.Key != "" {
		return t.is(e.Key)
	}
	return t.about(e.After) != "" || t.about(e.Before) != ""
}
