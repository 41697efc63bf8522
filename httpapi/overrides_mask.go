// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"encoding/json"
	"strings"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/policy"
)

// maskOverrides removes the keys, addresses and users of overrides for callers that may not change overrides.
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
		maskOverride(e.Before)
		maskOverride(e.After)
		e.Key = string(policy.Key(e.Key).MaskParts())
	}
}

func maskOverride(o *api.Override) {
	if o == nil {
		return
	}
	o.Key = string(policy.Key(o.Key).MaskParts())
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
