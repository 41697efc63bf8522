// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"strings"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/policy"
)

// topParts returns the parts of a key, by the names that policy files have for them. A
// key that no rule of the policy makes has the labels that stand in it.
func topParts(key policy.Key, r *policy.Rule) []api.KeyPart {
	parts := []api.KeyPart{}
	for i, p := range key.Parts() {
		name := p.Label
		if r != nil && i < len(r.LimitKeys) {
			name = r.LimitKeys[i].Spelled()
		}
		parts = append(parts, api.KeyPart{Name: printable(name), Value: printable(p.Value), Hashed: p.Hashed})
	}
	return parts
}

// maskParts replaces the values of the parts of a key.
func maskParts(parts []api.KeyPart) {
	for i, p := range parts {
		parts[i].Value = policy.KeyPart{Value: p.Value, Hashed: p.Hashed}.Mask()
	}
}

// printable replaces bytes that are not UTF-8, which JSON cannot carry.
func printable(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
