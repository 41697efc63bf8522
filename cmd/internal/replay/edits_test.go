// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"maps"
	"testing"
)

func TestEdits(t *testing.T) {
	const (
		a  = `{"name": "a", "limit_keys": ["ip:address"], "algorithm": "token_bucket", "algorithm_config": {"rps": 1, "burst": 10}}`
		a2 = `{"limit_keys": ["ip:address"], "name": "a", "description": "x", "algorithm": "token_bucket", "algorithm_config": {"burst": 1e1, "rps": 1.0}}`
		a3 = `{"name": "a", "limit_keys": ["ip:address"], "match": {"path": "/"}, "algorithm": "token_bucket", "algorithm_config": {"rps": 1, "burst": 10}}`
		b  = `{"name": "b", "limit_keys": [], "algorithm": "token_bucket", "algorithm_config": {"rps": 1, "burst": 10}}`
		c  = `{"name": "c", "limit_keys": ["header:x"], "algorithm": "token_bucket", "algorithm_config": {"rps": 1, "burst": 10}}`
	)
	rules := func(around, list string) string { return `{` + around + `"rules": [` + list + `]}` }
	bundle := func(around, spec string) string {
		return `{"bundle_version": 7, ` + around + `"policies": [{"id": "p", "spec": ` + spec + `}]}`
	}
	for name, tt := range map[string]struct {
		old, new string
		want     map[string]string
	}{
		"nothing":            {rules("", a+","+b), rules("", a+","+b), nil},
		"order and spelling": {rules("", a+","+b), rules("", b+","+a2), nil},
		"a clause":           {rules("", a+","+b), rules("", a3+","+b), map[string]string{"a": "changed"}},
		"one more":           {rules("", a), rules("", a+","+b), map[string]string{"b": "added"}},
		"one less":           {rules("", a+","+b), rules("", b), map[string]string{"a": "removed"}},
		"another name":       {rules("", a), rules("", b), map[string]string{"a": "removed", "b": "added"}},
		"mode of the policy": {rules("", a+","+b), rules(`"mode": "shadow", `, a+","+b), map[string]string{"a": "changed", "b": "changed"}},
		"an alone rule":      {b, rules("", b), nil},
		"no name":            {`{"algorithm": "token_bucket", "algorithm_config": {"rps": 1, "burst": 1}}`, `{"algorithm": "token_bucket", "algorithm_config": {"rps": 1, "burst": 2}}`, map[string]string{"default": "changed"}},
		"a later bundle":     {bundle("", rules("", a)), `{"bundle_version": 8, "policies": [{"id": "q", "spec": ` + rules("", a) + `}]}`, nil},
		"a bundle's slots":   {bundle("", rules("", c)), bundle(`"slot_by": "header:x", `, rules("", c)), map[string]string{"c": "changed"}},
		"slots of others":    {bundle("", rules("", a)), bundle(`"slot_by": "header:x", `, rules("", a)), nil},
	} {
		got := map[string]string{}
		for _, rule := range compare(t, tt.old, tt.new, "", false).summary["rules"].([]any) {
			if rule := rule.(map[string]any); rule["edit"] != "" {
				got[rule["rule"].(string)] = rule["edit"].(string)
			}
		}
		if !maps.Equal(got, tt.want) {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
}
