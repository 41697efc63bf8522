// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"strings"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/policy"
)

// topParts returns the parts of a key with the names that policy files use. If no rule produces the key, the
// parts keep the labels in the key.
func topParts(key policy.Key, r *policy.Rule) []api.KeyPart {
	parts := []api.KeyPart{}
	for i, p := range key.Parts() {
		name := p.Label
		if r != nil && i < len(r.LimitKeys) {
			name = r.LimitKeys[i].Spelling()
		}
		parts = append(parts, api.KeyPart{Name: toValidUTF8(name), Value: toValidUTF8(p.Value), Hashed: p.Hashed})
	}
	return parts
}

func maskParts(parts []api.KeyPart) {
	for i, p := range parts {
		parts[i].Value = policy.KeyPart{Value: p.Value, Hashed: p.Hashed}.Mask()
	}
}

func toValidUTF8(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
