// SPDX-License-Identifier: Apache-2.0

package policyyaml

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policyyaml/yamltree"
)

const maxDepth = yamltree.MaxDepth

// A converter writes YAML nodes as JSON and collects errors. It replaces an invalid value by a harmless one and
// continues, unless nothing can be converted.
type converter struct {
	file    string
	root    *yamltree.Node
	out     bytes.Buffer
	found   Errors
	open    map[*yamltree.Node]bool // the anchors being written, to detect cycles
	stopped bool
}

func (c *converter) addError(n *yamltree.Node, path, reason, hint string) {
	c.found = append(c.found, FileError{File: c.file, Line: n.Line, Column: n.Column, Error: policy.Error{
		Path: path, Reason: reason, Hint: hint}})
}

func (c *converter) stop(n *yamltree.Node, path, reason, hint string) {
	if !c.stopped {
		c.addError(n, path, reason, hint)
	}
	c.stopped = true
}

func (c *converter) writeValue(n *yamltree.Node, path string, depth int) {
	switch {
	case c.stopped:
		return
	case depth > maxDepth:
		c.stop(n, path, fmt.Sprintf("nested more than %d deep", maxDepth), "")
		return
	case c.out.Len() > MaxBytes:
		c.stop(n, path, fmt.Sprintf("the file is larger than %d bytes with its aliases expanded", MaxBytes),
			"use fewer aliases")
		return
	}
	if n.Kind != yamltree.Scalar && n.Tag != "" {
		c.addError(n, path, fmt.Sprintf("the tag %s is not supported", n.Tag), "remove it")
	}
	switch n.Kind {
	case yamltree.Scalar:
		c.writeScalar(n, path)
	case yamltree.List:
		c.out.WriteByte('[')
		for i, item := range n.Items {
			if i > 0 {
				c.out.WriteByte(',')
			}
			c.writeValue(item, joinPath(path, strconv.Itoa(i)), depth+1)
		}
		c.out.WriteByte(']')
	case yamltree.Mapping:
		c.writeMapping(n, path, depth)
	case yamltree.Alias:
		if c.open[n.Target] {
			c.stop(n, path, fmt.Sprintf("the alias *%s contains itself", n.Value), "")
			return
		}
		c.open[n.Target] = true
		c.writeValue(n.Target, path, depth+1)
		delete(c.open, n.Target)
	}
}

func (c *converter) writeMapping(n *yamltree.Node, path string, depth int) {
	c.out.WriteByte('{')
	lines, written := map[string]int{}, 0
	for _, field := range n.Fields {
		key, value := field.Key, field.Value
		if !c.checkKey(key, path, lines) {
			continue
		}
		if written++; written > 1 {
			c.out.WriteByte(',')
		}
		c.writeString(key.Value)
		c.out.WriteByte(':')
		c.writeValue(value, joinPath(path, key.Value), depth+1)
	}
	c.out.WriteByte('}')
}

// checkKey reports whether key can be a key of the object at path, and records an error otherwise. lines are the
// lines of the previous keys.
func (c *converter) checkKey(key *yamltree.Node, path string, lines map[string]int) bool {
	at := joinPath(path, key.Value)
	first, seen := lines[key.Value]
	switch {
	case key.Kind != yamltree.Scalar:
		c.addError(key, path, "a key must be a plain word, not a list, a mapping or an alias", "")
	case key.Tag != "" && key.Tag != "!!str":
		c.addError(key, at, fmt.Sprintf("the tag %s is not supported", key.Tag), "remove it; to write a string, use quotes")
	case key.Plain && key.Value == "<<":
		c.addError(key, at, "merge keys are not supported", "write the fields out, or alias a whole value: match: *name")
	case key.Plain && !strings.HasPrefix(resolve(key.Value).json, `"`):
		c.addError(key, at, fmt.Sprintf("the key %s is not a string", key.Value), "put it in quotes")
	case seen:
		c.addError(key, at, fmt.Sprintf("the key %s is used twice, first in line %d", key.Value, first), "remove one of them")
	default:
		lines[key.Value] = key.Line
		return true
	}
	return false
}

func (c *converter) writeScalar(n *yamltree.Node, path string) {
	if n.Tag != "" && n.Tag != "!!str" {
		c.addError(n, path, fmt.Sprintf("the tag %s is not supported", n.Tag), "remove it; to write a string, use quotes")
	}
	if !n.Plain {
		c.writeString(n.Value)
		return
	}
	v := resolve(n.Value)
	if v.reason != "" {
		c.addError(n, path, v.reason, v.hint)
	}
	if v.number && comparedAsText.MatchString(path) {
		c.writeString(n.Value)
		return
	}
	c.out.WriteString(v.json)
}

// comparedAsText matches the paths of attribute values. Matches compare these numbers as written, including
// forms that JSON changes, such as 0x10 and +5.
var comparedAsText = regexp.MustCompile(`/(match|request|with)/|/scope_value$`)

func (c *converter) writeString(s string) { c.out.WriteString(quoteJSON(s)) }

func quoteJSON(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return `""` // a string can always be encoded
	}
	return strings.TrimSuffix(b.String(), "\n")
}
