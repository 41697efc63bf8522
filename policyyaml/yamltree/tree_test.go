// SPDX-License-Identifier: Apache-2.0

package yamltree_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/metehq/mete/policyyaml/yamltree"
)

// shown writes a tree as text: scalars with their places, quoted unless plain.
func shown(n *yamltree.Node) string {
	switch n.Kind {
	case yamltree.List:
		var items []string
		for _, item := range n.Items {
			items = append(items, shown(item))
		}
		return "[" + strings.Join(items, " ") + "]"
	case yamltree.Mapping:
		var fields []string
		for _, f := range n.Fields {
			fields = append(fields, shown(f.Key)+"="+shown(f.Value))
		}
		return "{" + strings.Join(fields, " ") + "}"
	case yamltree.Alias:
		return "*" + n.Value
	}
	text := n.Value
	if !n.Plain {
		text = fmt.Sprintf("%q", n.Value)
	}
	return fmt.Sprintf("%s%s@%d:%d", n.Tag, text, n.Line, n.Column)
}

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"a: 010\nb: yes\n":                  "{a@1:1=010@1:4 b@2:1=yes@2:4}",
		"a:\nb: ~\n":                        "{a@1:1=@1:3 b@2:1=~@2:4}",
		"- 'x: y'\n- \"\\u00e9\\x41\"\n":    `["x: y"@1:3 "éA"@2:3]`,
		"ü: ä # c\nk: {ö: 1}\n":             "{ü@1:1=ä@1:4 k@2:1={ö@2:5=1@2:8}}",
		"a: 1\r\n# c\r\n\r\nb: \"x\r\n y\"": `{a@1:1=1@1:4 b@4:1="x y"@4:4}`,
		"a: |\n  x\n  y\nb: >-\n  x\n  y":   `{a@1:1="x\ny\n"@1:4 b@4:1="x y"@4:4}`,
		"a: &n [x]\nb: *n\n":                "{a@1:1=[x@1:8] b@2:1=*n}",
		"a: !!str 5":                        `{a@1:1=!!str"5"@1:4}`,
		"<<: {a: b}":                        "{<<@1:1={a@1:6=b@1:9}}",
		"%YAML 1.2\n---\na: b\n":            "{a@3:1=b@3:4}",
		"a: b\na: c\n":                      "{a@1:1=b@1:4 a@2:1=c@2:4}",

		// A colon is the end of a key only before a blank or a flow indicator.
		"{header:x-key: v, u: http://h:80/x}":   "{header:x-key@1:2=v@1:16 u@1:19=http://h:80/x@1:22}",
		`{ip:address: "a:b, c", "q":1, t: 8:0}`: `{ip:address@1:2="a:b, c"@1:14 "q"@1:24=1@1:28 t@1:31=8:0@1:34}`,
		"[header:x, {a: b:c}]":                  "[header:x@1:2 {a@1:13=b:c@1:16}]",
		"{a:, b: \ue000:x}":                     "{a@1:2=@1:4 b@1:6=\ue000:x@1:9}",
	} {
		root, err := yamltree.Parse([]byte(text))
		if err != nil {
			t.Errorf("%q: %v", text, err)
		} else if got := shown(root); got != want {
			t.Errorf("%q:\n got %s\nwant %s", text, got, want)
		}
	}
	for _, text := range []string{"", "# nothing\n", "---\n", "null\n", "~"} {
		if root, err := yamltree.Parse([]byte(text)); root != nil || err != nil {
			t.Errorf("%q: %v, %v, want neither", text, root, err)
		}
	}
}

// The parser reads these texts without an error, and in another way than YAML 1.2 specifies.
func TestParse_Misread(t *testing.T) {
	for text, want := range map[string]string{
		"rules:\n-\nx: y\n": "3:1: the previous list entry is empty",
		"a:\n1\n":           "2:1: did not find expected indentation",
		"a:\n  b:\n  c\n":   "3:3: did not find expected indentation",
		"a:\n[x]\n":         "2:1: did not find expected indentation",
		"x<<: {a: b}\n":     "1:2: a key must not end with <<",
		"a: {header::x}\n":  "1:12: did not find expected blank after ':'",
		"{s\":\"\":0,}":     "1:5: did not find expected blank after ':'",
		"? a: b\n: c\n":     "1:1: a key that begins with ? is not supported",
		"? a\n: b\n":        "1:1: a key that begins with ? is not supported",
		"{?}":               "1:2: a key that begins with ? is not supported",
		"a: [- x]\n":        "1:5: block sequence entries are not allowed",
		"a: {b:\n- x}\n":    "2:1: block sequence entries are not allowed",
		"a: x\n  - # c\n":   "3:1: a value without quotes contains a comment",
		"a: x\n\n \n  y\n":  "1:4: a value without quotes has several lines",
		"a: |--\n  x\n":     "1:4: did not find expected comment or line break",
		"a: x\r  y\n":       "1:5: the file has a carriage return",
	} {
		root, err := yamltree.Parse([]byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, %v, want an error that begins with %q", text, root, err, want)
		}
	}
	for text, want := range map[string]string{
		"a: |\n  x":        `{a@1:1="x"@1:4}`,
		"a: |+\n  x\n":     `{a@1:1="x\n"@1:4}`,
		"a: |\n  x\n  ":    `{a@1:1="x\n"@1:4}`,
		"a: x\n  y\n\n  z": `{a@1:1=x y` + "\n" + `z@1:4}`,
	} {
		root, err := yamltree.Parse([]byte(text))
		if err != nil || shown(root) != want {
			t.Errorf("%q: %v, %v, want %s", text, root, err, want)
		}
	}
}

// An alias can be inside of its own value: the reader of the tree decides.
func TestParse_Cycle(t *testing.T) {
	root, err := yamltree.Parse([]byte("a: &x [*x]"))
	if err != nil {
		t.Fatal(err)
	}
	list := root.Fields[0].Value
	if list.Items[0].Resolve() != list {
		t.Errorf("the alias stands for %v, want the list around it", list.Items[0].Resolve())
	}
}

func TestParse_Refuses(t *testing.T) {
	for text, want := range map[string]string{
		"a: [":                      "1:4: ",
		"a: b\n---\nc: d\n":         "2:1: a second document begins here",
		"a: b\n...\nc: d\n":         "3:1: a second document begins here",
		"a: *secret\n":              "1:4: unknown anchor",
		"a: \xff":                   "1:4: the byte 0xFF is not UTF-8",
		"\xff\xfea\x00":             "1:1: the byte 0xFF is not UTF-8",
		"a: \x00":                   "1:4: the file has the control character 0x00",
		"a: {b: 1c: 2}":             "1:8: mapping values are not allowed",
		"a: {b: 1]0}":               "1:8: did not find expected ',' before ]",
		"a: [b}":                    "1:",
		"a: 1\t0":                   "1:4: a value without quotes contains a tab",
		"a: @b":                     "1:4: ",
		"a:\n\tb: c":                "2:1: ",
		strings.Repeat("- ", 65):    "1:129: nested more than 64 deep",
		strings.Repeat("[", 65):     "1:65: nested more than 64 deep",
		strings.Repeat("[", 1<<20):  "1:65: nested more than 64 deep",
		strings.Repeat("a:\n", 1e5): "10001:2: the mapping has more than 10000 fields",
	} {
		root, err := yamltree.Parse([]byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%.40q: %v, %v, want an error that begins with %q", text, root, err, want)
		}
	}
}
