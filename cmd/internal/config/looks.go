// SPDX-License-Identifier: Apache-2.0

package config

import (
	"reflect"
	"slices"

	"github.com/metehq/mete/policyyaml/yamltree"
)

// policyKeys are those that a policy file has one of at least.
var policyKeys = []string{"rules", "policies", "overrides", "kill_switches", "bundle_version", "tests", "spec",
	"limit_keys", "limits", "algorithm", "algorithm_config", "match"}

// LooksLike reports whether data is meant to be a configuration file, though it was
// given where a policy belongs: it has several settings, and nothing of a policy.
func LooksLike(data []byte) bool {
	if len(data) > maxFileBytes {
		return false
	}
	root, err := yamltree.Parse(data)
	if err != nil || root == nil {
		return false
	}
	settings := 0
	for _, f := range root.Fields {
		if slices.Contains(policyKeys, f.Key.Value) {
			return false
		}
		if _, ok := fieldByKey(reflect.ValueOf(Config{}), f.Key.Value); ok {
			settings++
		}
	}
	return settings >= 2
}
