// SPDX-License-Identifier: Apache-2.0

package policyyaml_test

import (
	"testing"

	"github.com/metehq/mete/policyyaml"
)

func TestPlaces(t *testing.T) {
	paths := []string{"", "/rules/1", "/rules/1/name", "/rules/0/match/header:a~1b", "/rules/0/limits/3/rps", "/absent"}
	for name, tt := range map[string]struct {
		text string
		want []policyyaml.Place
	}{
		"p.yaml": {"# first\nrules:\n  - name: a\n    match: { \"header:a/b\": x }\n    limits: [1]\n  - name: b\n",
			[]policyyaml.Place{{2, 1}, {6, 5}, {6, 11}, {4, 28}, {5, 5}, {2, 1}}},
		"p.json": {"\ufeff{\"rules\": [\n {\"name\": \"a\", \"match\": {\"header:a/b\": 1}, \"limits\": [1]},\n {\"name\": \"b\"}]}",
			[]policyyaml.Place{{1, 1}, {3, 2}, {3, 11}, {2, 40}, {2, 44}, {1, 1}}},
		"broken.yaml": {"a: [", make([]policyyaml.Place, 6)},
	} {
		got := policyyaml.Places(name, []byte(tt.text), paths)
		for i, path := range paths {
			if got[path] != tt.want[i] {
				t.Errorf("%s %q: %v, want %v", name, path, got[path], tt.want[i])
			}
		}
	}
}
