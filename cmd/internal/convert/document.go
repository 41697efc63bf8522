// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/metehq/mete/policyyaml"
)

type document struct {
	file   string
	root   any
	places map[string]policyyaml.Place // by JSON Pointer; empty for TOML
}

// parseDocument parses a configuration in YAML or JSON. It expands YAML anchors.
func parseDocument(file string, data []byte) (*document, error) {
	// All files are parsed as YAML, because JSON-like files of APISIX may end in comments.
	text, err := policyyaml.Raw("", data)
	if err != nil {
		var all policyyaml.Errors
		if errors.As(err, &all) && len(all) > 0 {
			return nil, &Error{File: file, Line: all[0].Line, Reason: all[0].Reason}
		}
		return nil, &Error{File: file, Reason: "not YAML: " + err.Error()}
	}
	d := &document{file: file}
	if err := d.decode(text); err != nil {
		return nil, err
	}
	paths := pathsOf("", d.root, nil)
	d.places = policyyaml.Places("", data, paths)
	return d, nil
}

// parseTOML parses a configuration in TOML. Its nodes have no line numbers.
func parseTOML(file string, data []byte) (*document, error) {
	var root map[string]any
	if err := toml.Unmarshal(data, &root); err != nil {
		var bad toml.ParseError
		if errors.As(err, &bad) {
			return nil, &Error{File: file, Line: bad.Position.Line, Reason: "not valid TOML: " + bad.Message}
		}
		return nil, &Error{File: file, Reason: "not valid TOML: " + err.Error()}
	}
	text, err := json.Marshal(root)
	if err != nil {
		return nil, &Error{File: file, Reason: "not valid TOML: " + err.Error()}
	}
	d := &document{file: file}
	return d, d.decode(text)
}

func (d *document) decode(text []byte) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(&d.root); err != nil {
		return &Error{File: d.file, Reason: err.Error()}
	}
	return nil
}

func pathsOf(path string, value any, paths []string) []string {
	paths = append(paths, path)
	switch v := value.(type) {
	case map[string]any:
		for key, below := range v {
			paths = pathsOf(path+"/"+escapePointer.Replace(key), below, paths)
		}
	case []any:
		for i, below := range v {
			paths = pathsOf(path+"/"+strconv.Itoa(i), below, paths)
		}
	}
	return paths
}

var escapePointer = strings.NewReplacer("~", "~0", "/", "~1")

func (d *document) top() node { return node{doc: d, value: d.root, exists: true} }

// A node is a value in a document. It may be absent.
type node struct {
	doc    *document
	path   string
	key    string // of the field; "" in a list
	value  any
	exists bool
}

func (n node) position() string { return place(n.doc.file, n.line()) }

func (n node) line() int { return n.doc.places[n.path].Line }

func (n node) fail(format string, args ...any) *Error {
	return &Error{File: n.doc.file, Line: n.line(), Reason: fmt.Sprintf(format, args...)}
}

// field returns a field of an object. An absent field has the position of its object.
func (n node) field(names ...string) node {
	for _, name := range names {
		object, _ := n.value.(map[string]any)
		value, ok := object[name]
		n = node{n.doc, n.path + "/" + escapePointer.Replace(name), name, value, ok && value != nil}
	}
	return n
}

func (n node) fields() []node {
	object, _ := n.value.(map[string]any)
	var all []node
	for _, name := range slices.Sorted(maps.Keys(object)) {
		all = append(all, n.field(name))
	}
	slices.SortStableFunc(all, func(a, b node) int { return a.line() - b.line() })
	return all
}

// items returns the elements of a list. A single value counts as a list.
func (n node) items() []node {
	list, ok := n.value.([]any)
	if !ok && n.exists {
		return []node{n}
	}
	var all []node
	for i, value := range list {
		all = append(all, node{n.doc, n.path + "/" + strconv.Itoa(i), "", value, value != nil})
	}
	return all
}

// text returns a string, number or boolean as text, and "" for other values.
func (n node) text() string {
	switch v := n.value.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	}
	return ""
}

func (n node) texts() []string {
	var all []string
	for _, item := range n.items() {
		all = append(all, item.text())
	}
	return all
}

func (n node) isTrue() bool { return n.text() == "true" }

// maxCount bounds the numbers in configurations. A larger number is probably a typo.
const maxCount = 1 << 40

// number returns a non-negative integer, or 0 for an absent node.
func (n node) number() (int64, *Error) {
	if !n.exists {
		return 0, nil
	}
	number, err := strconv.ParseInt(n.text(), 10, 64)
	if err != nil || number < 0 || number > maxCount {
		return 0, n.fail("%s: want a whole number from 0 to %d (got %q)", n.key, int64(maxCount), n.text())
	}
	return number, nil
}

// name returns the name or ID of an object, or kind if it has neither.
func (n node) name(kind string) string {
	for _, field := range []string{"name", "id", "username"} {
		if text := n.field(field).text(); text != "" {
			return text
		}
	}
	return kind
}

func addressDiffers(r *Result, where, gateway string) {
	r.Differ(where, gateway+" counts each IPv6 address by itself.", "mete counts the /64 of an IPv6 address.", "Use ip:address/128 in limit_keys to count like "+gateway+".")
}
