// SPDX-License-Identifier: Apache-2.0

package ai

import (
	"bytes"
	"encoding/json"
	"strings"
)

// A tree lists the members that a walker follows. Arrays are transparent: their elements have the node of the array.
// An object in place of an array of objects is accepted, too.
type tree []node

// The first two nodes of each tree.
const (
	ignoredNode = iota
	rootNode
)

type node struct {
	field    field
	leaf     bool  // it has no children: containers are ignored
	exact    bool  // its keys must not be ambiguous, see walker.checkKey
	other    uint8 // the child for all other keys, or ignoredNode
	lengths  uint64
	children []child
}

type child struct {
	key  string
	node uint8
}

// newTree builds a tree of lines with a field and its paths. The key * stands for all other keys. A key can have two names, as in
// generationConfig|generation_config.
func newTree(lines ...line) tree {
	t := tree{{leaf: true}, {leaf: true}}
	for _, l := range lines {
		for path := range strings.FieldsSeq(l.paths) {
			at := uint8(rootNode)
			for key := range strings.SplitSeq(path, ".") {
				at = t.grow(at, key)
			}
			t[at].field = l.field
		}
	}
	return t
}

type line struct {
	field field
	paths string
}

// grow returns the child of a node. It adds the child if it does not exist.
func (t *tree) grow(parent uint8, key string) uint8 {
	n := &(*t)[parent]
	key, alias, _ := strings.Cut(key, "|")
	if next := t.match(parent, []byte(key)); next != ignoredNode {
		return next
	}
	if key == "*" && n.other != ignoredNode {
		return n.other
	}
	next := uint8(len(*t))
	n.leaf = false
	if key == "*" {
		n.other = next
	} else {
		n.add(key, next)
		if alias != "" {
			n.add(alias, next)
		}
	}
	*t = append(*t, node{leaf: true})
	return next
}

func (n *node) add(key string, to uint8) {
	n.lengths |= 1 << len(key)
	n.children = append(n.children, child{key, to})
}

// newRequestTree builds a tree of a request. The keys of its root are exact, and so are the keys beside charged members.
func newRequestTree(lines []line) tree {
	t := newTree(lines...)
	t[rootNode].exact = true
	for at := range t {
		for _, c := range t[at].children {
			t[at].exact = t[at].exact || isCharged(t[c.node].field)
		}
	}
	return t
}

// newMemberTree builds a tree of the members that a request is charged by, without its text. Its root has all keys.
func newMemberTree(lines []line) tree {
	var members []line
	for _, l := range lines {
		for path := range strings.FieldsSeq(l.paths) {
			if !isCharged(l.field) {
				path, _, _ = strings.Cut(path, ".")
				members = append(members, line{fNothing, path})
				continue
			}
			members = append(members, line{l.field, path})
		}
	}
	return newRequestTree(members)
}

// match returns the child with a key, or ignoredNode.
func (t tree) match(parent uint8, key []byte) uint8 {
	n := &t[parent]
	if n.lengths&(1<<len(key)) == 0 { // a shift by 64 or more is 0
		return ignoredNode
	}
	for i := range n.children {
		if c := &n.children[i]; c.key == string(key) {
			return c.node
		}
	}
	return ignoredNode
}

// child returns the node of a raw key. A key with escape sequences is the same key.
func (t tree) child(parent uint8, raw []byte) uint8 {
	if next := t.match(parent, raw); next != ignoredNode {
		return next
	}
	if bytes.IndexByte(raw, '\\') >= 0 {
		if next := t.match(parent, []byte(unquote(raw))); next != ignoredNode {
			return next
		}
	}
	return t[parent].other
}

// unquote decodes the inside of a JSON string. Invalid strings remain as they are.
func unquote(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw)
	}
	var s string
	quoted := append(append([]byte{'"'}, raw...), '"')
	if json.Unmarshal(quoted, &s) != nil {
		return string(raw)
	}
	return s
}
