// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"encoding/json"
	"strings"

	"github.com/metehq/mete/policy"
)

// mask leaves of the answer what those may see who may not change an override: whom
// one is about could be a key, an address or a person.
func (list *Overrides) mask() {
	for i := range list.Overrides {
		o := &list.Overrides[i]
		o.Override = *maskedOverride(&o.Override)
		for j := range o.Mistakes {
			o.Mistakes[j].Detail, _, _ = strings.Cut(o.Mistakes[j].Detail, " (got ")
		}
	}
	for i := range list.Audit {
		e := &list.Audit[i]
		e.Before, e.After = maskedOverride(e.Before), maskedOverride(e.After)
		e.Key = maskedKey(e.Key)
	}
}

// maskedKey leaves the limit.
func maskedKey(key string) string {
	if key == "" {
		return ""
	}
	limit, _ := topKey(key, nil)
	return limit + ":…"
}

// maskedOverride returns a copy.
func maskedOverride(o *policy.Override) *policy.Override {
	if o == nil {
		return nil
	}
	c := *o
	c.Key = maskedKey(c.Key)
	var clauses map[string]any
	if len(c.Match) == 0 || json.Unmarshal(c.Match, &clauses) != nil {
		return &c
	}
	for name, wanted := range clauses {
		switch name {
		case "method", "path", "host":
		default:
			clauses[name] = maskedValues(wanted)
		}
	}
	c.Match, _ = json.Marshal(clauses) // it came from JSON
	return &c
}

// maskedValues masks every string in a clause of a match.
func maskedValues(v any) any {
	switch v := v.(type) {
	case string:
		return masked(v)
	case []any:
		for i := range v {
			v[i] = maskedValues(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = maskedValues(v[name])
		}
	}
	return v
}
