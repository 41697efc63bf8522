// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// MaxFileBytes bounds a policy file. Longer ones are refused.
	MaxFileBytes = 8 << 20

	// maxDepth bounds how deep lists and objects nest: the language needs half.
	maxDepth = 16
)

// A kind is the type of a JSON value.
type kind uint8

const (
	isNull kind = iota
	isBool
	isNumber
	isText
	isList
	isObject
)

// A node is one value of a policy file, in the order of the file and with its
// place. encoding/json alone would lose duplicate fields, the spelling of
// numbers and the place of every mistake.
type node struct {
	kind   kind
	text   string // of a string, or a number or boolean as it is written
	list   []*node
	fields []field
	path   string // JSON Pointer
	at     int64  // offset in the file
}

// A field is a member of an object.
type field struct {
	name  string
	value *node
}

// field returns the value of a field, nil if there is none.
func (n *node) field(name string) *node {
	for _, f := range n.fields {
		if f.name == name {
			return f.value
		}
	}
	return nil
}

// pointerEscaper escapes a name in a JSON Pointer (RFC 6901, section 3).
var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

// parse reads a JSON text. It returns nil where there is no tree to speak of;
// the mistakes are in r.
func (r *report) parse(data []byte) *node {
	root := &node{}
	if len(data) > MaxFileBytes {
		r.absent(root, fmt.Sprintf("the file has %d bytes, the most is %d", len(data), MaxFileBytes), "")
		return nil
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !utf8.Valid(data) {
		r.absent(root, "the file is not UTF-8 text", "")
		return nil
	}
	var raw json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		r.absent(root, "not JSON: "+syntax(data, err), "")
		return nil
	}
	p := treeParser{report: r, dec: json.NewDecoder(bytes.NewReader(data))}
	p.dec.UseNumber()
	if root = p.value("", 0); p.tooDeep {
		return nil
	}
	return root
}

// syntax says where a JSON text is broken.
func syntax(data []byte, err error) string {
	var se *json.SyntaxError
	if !errors.As(err, &se) {
		return err.Error()
	}
	before := data[:min(max(int(se.Offset)-1, 0), len(data))]
	line, column := 1+bytes.Count(before, []byte("\n")), 1+utf8.RuneCount(before[1+bytes.LastIndexByte(before, '\n'):])
	return fmt.Sprintf("%s in line %d, column %d", strings.TrimPrefix(se.Error(), "json: "), line, column)
}

// A treeParser turns the tokens of a valid JSON text into nodes.
type treeParser struct {
	report  *report
	dec     *json.Decoder
	tooDeep bool
}

// value reads one value.
func (p *treeParser) value(path string, depth int) *node {
	n := &node{path: path}
	token, err := p.dec.Token()
	n.at = p.dec.InputOffset()
	if err != nil {
		return n // cannot be: the text was valid
	}
	switch v := token.(type) {
	case bool:
		n.kind, n.text = isBool, strconv.FormatBool(v)
	case json.Number:
		n.kind, n.text = isNumber, v.String()
	case string:
		n.kind, n.text = isText, v
	case json.Delim:
		if depth >= maxDepth {
			if !p.tooDeep {
				p.report.absent(n, fmt.Sprintf("lists and objects nest deeper than %d", maxDepth), "")
			}
			p.tooDeep = true
			return n
		}
		if n.kind = isList; v == '{' {
			n.kind = isObject
		}
		p.inside(n, depth)
	}
	return n
}

// inside reads what is between the brackets of n.
func (p *treeParser) inside(n *node, depth int) {
	var seen map[string]bool
	if n.kind == isObject {
		seen = map[string]bool{}
	}
	for i := 0; !p.tooDeep && p.dec.More(); i++ {
		if n.kind == isList {
			n.list = append(n.list, p.value(n.path+"/"+strconv.Itoa(i), depth+1))
			continue
		}
		token, _ := p.dec.Token()
		name, _ := token.(string)
		value := p.value(n.path+"/"+pointerEscaper.Replace(name), depth+1)
		if seen[name] {
			p.report.absent(value, fmt.Sprintf("field %q is given twice", name), "remove one of them")
			continue
		}
		seen[name] = true
		n.fields = append(n.fields, field{name, value})
	}
	if !p.tooDeep {
		_, _ = p.dec.Token() // the closing bracket
	}
}

// appendJSON appends n as JSON: what parse would read as n.
func (n *node) appendJSON(dst []byte) []byte {
	text := func(s string) []byte {
		b, _ := json.Marshal(s) // never fails
		return b
	}
	switch n.kind {
	case isNull:
		return append(dst, "null"...)
	case isBool, isNumber:
		return append(dst, n.text...)
	case isText:
		return append(dst, text(n.text)...)
	case isList:
		dst = append(dst, '[')
		for i, item := range n.list {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = item.appendJSON(dst)
		}
		return append(dst, ']')
	}
	dst = append(dst, '{')
	for i, f := range n.fields {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(dst, text(f.name)...), ':')
		dst = f.value.appendJSON(dst)
	}
	return append(dst, '}')
}
