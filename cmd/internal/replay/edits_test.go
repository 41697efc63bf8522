// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"maps"
	"testing"

	"github.com/metehq/mete/cmd/internal/replay"
)

func TestEdits(t *testing.T) {
	const (
		a  = `{"name": "a", "limit_keys": ["ip:address"], "algorithm": "token_bucket", "algorithm_config": {"rps": 1, "burst": 10}}`
		a2 = `{"limit_keys": ["ip:address"], "name": "a", "description": "x", "algorithm": "token_bucket", "algorithm_config": {"burst": 1e1, "rps": 1.0}}`
		a3 = `{"name": "a", "limit_keys": ["ip:address"], "match": {"path": "/"}, "algorithm": "token_bucket", "algorithm_config": {"rps": 1, "burst": 10}}`
		b  = `{"name": "b", "limit_keys": [], "algorithm": "token_bucket", "algorithm_config": {"rps": 1, "burst": 10}}`
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
		"a clause":           {rules("", a+","+b), rules("", a3+","+b), map[string]string{"a": replay.Changed}},
		"one more":           {rules("", a), rules("", a+","+b), map[string]string{"b": replay.Added}},
		"one less":           {rules("", a+","+b), rules("", b), map[string]string{"a": replay.Removed}},
		"another name":       {rules("", a), rules("", b), map[string]string{"a": replay.Removed, "b": replay.Added}},
		"mode of the policy": {rules("", a+","+b), rules(`"mode": "shadow", `, a+","+b), map[string]string{"a": replay.Changed, "b": replay.Changed}},
		"an alone rule":      {b, rules("", b), nil},
		"no name":            {`{"algorithm": "token_bucket", "algorithm_config": {"rps": 1, "burst": 1}}`, `{"algorithm": "token_bucket", "algorithm_config": {"rps": 1, "burst": 2}}`, map[string]string{"default": replay.Changed}},
		"a later bundle":     {bundle("", rules("", a)), `{"bundle_version": 8, "policies": [{"id": "q", "spec": ` + rules("", a) + `}]}`, nil},
		"a bundle's slots":   {bundle("", rules("", a)), bundle(`"slot_by": "header:x", `, rules("", a)), map[string]string{"a": replay.Changed}},
	} {
		if got := replay.Edits([]byte(tt.old), []byte(tt.new)); !maps.Equal(got, tt.want) {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
}
