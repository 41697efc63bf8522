// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"

	"github.com/metehq/mete/internal/prose"
	"github.com/metehq/mete/policy"
)

// storeErrorName is the word of policy files for what happens without the store.
func storeErrorName(r *policy.Rule) string {
	switch r.OnStoreError {
	case policy.StoreErrorClosed:
		return "closed"
	case policy.StoreErrorLocal:
		return "local"
	}
	return "open"
}

// storeError says that, and when, where the rule does.
func storeError(r *policy.Rule) string {
	if r.Deadline == policy.DefaultDeadline {
		return storeErrorName(r)
	}
	return storeErrorName(r) + " after " + prose.Duration(r.Deadline)
}

// keyNames says who shares a bucket of the rule.
func keyNames(r *policy.Rule) string {
	if len(r.LimitKeys) == 0 {
		return "(one for all)"
	}
	names := make([]string, len(r.LimitKeys))
	for i, a := range r.LimitKeys {
		names[i] = a.Spelled()
	}
	return strings.Join(names, " ")
}
