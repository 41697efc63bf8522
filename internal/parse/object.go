// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"fmt"
	"slices"
	"strings"

	"github.com/metehq/mete/internal/spell"
)

// A Field is a field of an object.
type Field struct {
	Name string
	Doc  string // its description in the JSON Schema
	Form Schema // of its value
}

// An UnknownField is a common wrong field name in an object, with advice for the error.
type UnknownField struct {
	Reason   string   // empty for an unknown field
	Hint     string   // the remedy
	Replaces []string // the fields that it replaces: they do not count as missing
}

// A Table lists the fields of an object.
type Table struct {
	What          string  // for messages: "a rule"
	Example       string  // of the object, if its form is not obvious
	Fields        []Field // in the order of messages
	Required      []string
	UnknownFields map[string]UnknownField
}

// Names returns the names of the fields.
func (t *Table) Names() []string {
	names := make([]string, len(t.Fields))
	for i := range t.Fields {
		names[i] = t.Fields[i].Name
	}
	return names
}

// Has reports whether the object can have the field.
func (t *Table) Has(name string) bool {
	for i := range t.Fields {
		if t.Fields[i].Name == name {
			return true
		}
	}
	return false
}

// An Object reads the fields of a node.
type Object struct {
	*Node
	report *Report
	meant  []string // fields that misspelled ones probably stand for
}

// Object checks that n is an object with only the fields of t. It returns nil if n is not an object.
func (r *Report) Object(n *Node, t *Table) *Object {
	if n.Kind != KindObject {
		hint := ""
		if t.Example != "" {
			hint = "as in " + t.Example
		}
		r.Add(n, t.What+" must be an object", hint)
		return nil
	}
	o := &Object{Node: n, report: r}
	for i := range n.Fields {
		if f := &n.Fields[i]; !t.Has(f.Name) {
			o.refuse(f, t)
		}
	}
	return o
}

func (o *Object) refuse(f *Member, t *Table) {
	name, _ := Cut(f.Name)
	reason := fmt.Sprintf("unknown field %q in %s", name, t.What)
	if s, ok := t.UnknownFields[f.Name]; ok {
		if s.Reason != "" {
			reason = s.Reason
		}
		o.meant = append(o.meant, s.Replaces...)
		o.report.AddAt(f.Value, reason, s.Hint)
		return
	}
	names := t.Names()
	hint := "valid fields are " + strings.Join(names, ", ")
	if near := spell.Nearest(f.Name, names); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
		o.meant = append(o.meant, near)
	} else if len(names) == 1 {
		hint = fmt.Sprintf("the only one is %q", names[0])
	}
	o.report.AddAt(f.Value, reason, hint)
}

// Require returns a required field. It reports a missing field, unless a misspelled field explains it.
func (o *Object) Require(name, hint string) *Node {
	n := o.Field(name)
	if n == nil && !o.HasMisspelled(name) {
		o.report.AddAt(o.Node, fmt.Sprintf("field %q is missing", name), hint)
	}
	return n
}

// Count returns how many of the fields the object has.
func (o *Object) Count(names ...string) (n int) {
	for _, name := range names {
		if o.Field(name) != nil {
			n++
		}
	}
	return n
}

// HasMisspelled reports whether a misspelled field probably stands for one of names, or for any field without names.
func (o *Object) HasMisspelled(names ...string) bool {
	return len(names) == 0 && len(o.meant) > 0 ||
		slices.ContainsFunc(names, func(name string) bool { return slices.Contains(o.meant, name) })
}
