// SPDX-License-Identifier: Apache-2.0

package yamltree_test

import (
	"strings"
	"testing"

	"github.com/metehq/mete/policyyaml/yamltree"
)

func TestMask(t *testing.T) {
	show := func(key string) bool { return key == "a" || key == "list" || key == "a:b" }
	for text, want := range map[string]string{
		"a: x\nsecret: y\n":                     "a: x\nsecret: …\n",
		"a: 1 # secret\n":                       "a: 1 …\n",
		"# secret\na: 1\n":                      "…\na: 1\n",
		"s: {a: 1, s: yyy, a:b: 2}":             "s: {a: 1, s: …  , a:b: 2}",
		"s: [secret, {a: 1}, 'secret']\na: 2":   "s: […     , {a: 1}, …       ]\na: 2",
		"s:\n  - a: 1\n  - secret\n":            "s:\n  - a: 1\n  - …\n",
		"s:\n- a: 1\n- secret\n":                "s:\n- a: 1\n- …\n",
		"s: |\n  secret\n  secret\na: |\n  x\n": "s: |\n  …\n\na: |\n  x\n",
		"s: \"secret\n  secret\"\na: 1":         "s: …\n\na: 1",
		"s: !!str secret\na: 1":                 "s: …\na: 1",
		"s: &secret secret\na: 1":               "s: …       …\na: 1",
		"s: *secret\na: 1":                      "s: …\na: 1",
		"s:\n  - secret\n  - secret\nlist: [b]": "s:\n  - …\n  - …\nlist: [b]",
		"s: secret: secret":                     "s: …     : …",
		"{s: secret: secret}":                   "{s: …             }",
		"a: [\ns: secret":                       "a: [\ns: …",
		"s: \"secret\nsecret: x":                "s: …\n",
		"a: \"x\nsecret\nsecret: x":             "a: \"x\n…\n",
		"secret":                                "…",
		"s: http://secret:secret@h":             "s: …",
		"a: \"\tx\"\n#secret\nlist: x":          "a: \"\tx\"\n…\nlist: x",
		"a:\n! u:\n- secret":                    "a:\n! u:\n- …",
		"a:\n&a u:\n- secret":                   "a:\n&a u:\n- …",
		"s: [a: 1, secret]":                     "s: [a: 1, …     ]",
		"a: ü\ns: üsecret":                      "a: ü\ns: …",
	} {
		got := yamltree.Mask([]byte(text), show)
		if got != want && strings.Contains(strings.ReplaceAll(got, "secret:", ""), "secret") || strings.Count(got, "\n") != strings.Count(text, "\n") || got != want {
			t.Errorf("%q:\n got %q\nwant %q", text, got, want)
		}
	}
}
