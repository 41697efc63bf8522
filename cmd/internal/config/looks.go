// SPDX-License-Identifier: Apache-2.0

package config

import (
	"reflect"
	"slices"

	"go.yaml.in/yaml/v3"
)

// policyKeys are those that a policy file has one of at least.
var policyKeys = []string{"rules", "policies", "overrides", "kill_switches", "bundle_version", "tests", "spec",
	"limit_keys", "limits", "algorithm", "algorithm_config", "match"}

// LooksLike reports whether data is meant to be a configuration file, though it was
// given where a policy belongs: it has several settings, and nothing of a policy.
func LooksLike(data []byte) bool {
	var doc map[string]yaml.Node
	if len(data) > maxFileBytes || yaml.Unmarshal(data, &doc) != nil {
		return false
	}
	settings := 0
	for key := range doc {
		if slices.Contains(policyKeys, key) {
			return false
		}
		if _, ok := fieldByKey(reflect.ValueOf(Config{}), key); ok {
			settings++
		}
	}
	return settings >= 2
}
