// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"bytes"
	"encoding/json"
)

// A Schema is a JSON Schema (draft 2020-12) or a part of one.
type Schema map[string]any

// JSON returns s in its JSON form, indented.
func (s Schema) JSON() []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	_ = enc.Encode(s) // never fails
	return b.Bytes()
}

// Ref refers to the named definition.
func Ref(name string) Schema { return Schema{"$ref": "#/$defs/" + name} }

// ListOf describes lists of least to most items.
func ListOf(items Schema, least, most int) Schema {
	list := Schema{"type": "array", "items": items, "maxItems": most}
	if least > 0 {
		list["minItems"] = least
	}
	return list
}

// Text describes strings of at most most characters.
func Text(most int) Schema { return Schema{"type": "string", "maxLength": most} }

// NonEmptyText describes strings of 1 to most characters.
func NonEmptyText(most int) Schema {
	return Schema{"type": "string", "minLength": 1, "maxLength": most}
}

// Whole describes whole numbers from least to most.
func Whole(least, most int64) Schema {
	return Schema{"type": "integer", "minimum": least, "maximum": most}
}

// Bool describes booleans.
func Bool() Schema { return Schema{"type": "boolean"} }

// Word describes strings that are one of words.
func Word(words ...string) Schema { return Schema{"enum": words} }

// Either describes values that fit one of parts.
func Either(parts ...Schema) Schema { return Schema{"anyOf": parts} }

// Having describes objects that have all of the fields.
func Having(names ...string) Schema { return Schema{"required": names} }

// AnyHaving describes objects that have one of the fields.
func AnyHaving(names ...string) Schema {
	var parts []Schema
	for _, name := range names {
		parts = append(parts, Having(name))
	}
	return Either(parts...)
}

// If describes values that fit then if they fit condition.
func If(condition, then Schema) Schema { return Schema{"if": condition, "then": then} }

// Lacking describes objects that do not have the field.
func Lacking(name string) Schema { return Schema{"not": Having(name)} }

// HavingValue describes objects whose field with this name has the value word.
func HavingValue(name, word string) Schema {
	return Schema{"required": []string{name}, "properties": Schema{name: Schema{"const": word}}}
}

// With adds conditions to an object.
func (s Schema) With(conditions ...Schema) Schema {
	s["allOf"] = conditions
	return s
}

// Schema describes objects with only the fields of t.
func (t *Table) Schema() Schema {
	properties := Schema{}
	for _, f := range t.Fields {
		p := Schema{"description": f.Doc}
		for key, value := range f.Form {
			p[key] = value
		}
		if earlier, ok := properties[f.Name].(Schema); ok { // the form depends on the algorithm
			p = Schema{"description": f.Doc, "anyOf": []Schema{earlier, p}}
		}
		properties[f.Name] = p
	}
	o := Schema{"type": "object", "properties": properties, "additionalProperties": false}
	if len(t.Required) > 0 {
		o["required"] = t.Required
	}
	return o
}
