// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"encoding/json"
	"strings"

	"github.com/metehq/mete/api"
)

// maskOverrides removes from the answer the parts that a caller may not see who may not
// change an override: the key, address or person that it is about.
func maskOverrides(list *api.Overrides) {
	for i := range list.Overrides {
		o := &list.Overrides[i]
		maskOverride(&o.Override)
		for j := range o.Mistakes {
			o.Mistakes[j].Detail, _, _ = strings.Cut(o.Mistakes[j].Detail, " (got ")
		}
	}
	for i := range list.Audit {
		e := &list.Audit[i]
		e.Before, e.After = maskedOverride(e.Before), maskedOverride(e.After)
		e.Key = string(policy.Key(e.Key).MaskParts())
	}
}

// maskedOverride returns a copy.
func maskedOverride(o *policy.Override) *policy.Override {
	if o == nil {
		return
	}
	c := *o
	c.Key = string(policy.Key(c.Key).MaskParts())
	var clauses map[string]any
	if len(o.Match) == 0 || json.Unmarshal(o.Match, &clauses) != nil {
		return
	}
	for name, wanted := range clauses {
		switch name {
		case "method", "path", "host":
		default:
			clauses[name] = maskedValues(wanted)
		}
	}
	o.Match, _ = json.Marshal(clauses) // it came from JSON
}

// maskedValues masks every string in a clause of a match.
func maskedValues(v any) any {
	switch v := v.(type) {
	case string:
		return policy.KeyPart{Value: v}.Mask()
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
