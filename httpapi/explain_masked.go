// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"strings"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/policy"
)

const maskedWants = "a value that your role does not show"

// maskExplanation removes from x the values that the role read may not see: hashes in keys, other clients in
// overrides, and secret values in matches.
func maskExplanation(x *api.Explanation) {
	maskOverride(x.Override)
	maskOverride(x.ShadowedBy)
	for i := range x.Rules {
		r := &x.Rules[i]
		maskOverride(r.Override)
		if a, err := policy.ParseAttribute(r.Attribute); err == nil && a.IsSecret() && strings.Contains(r.Condition, `"`) {
			r.Why = strings.Replace(r.Why, "wants "+r.Condition, "wants "+maskedWants, 1)
			r.Condition = maskedWants
		}
		for j := range r.Limits {
			r.Limits[j].Key, r.Limits[j].Masked = policy.Key(r.Limits[j].Key).MaskHashes()
		}
	}
}
