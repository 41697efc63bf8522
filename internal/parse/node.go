// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

const maxDepth = 16

// A Kind is the type of a JSON value.
type Kind uint8

const (
	KindNull Kind = iota
	KindBool
	KindNumber
	KindText
	KindList
	KindObject
)

// A Node is one value of a document with its place. Decoding with encoding/json alone would lose duplicate fields,
// the spelling of numbers and the places of errors.
type Node struct {
	Kind   Kind
	Text   string   // of a string, or a number or boolean as the document spells it
	List   []*Node  // of a list
	Fields []Member // of an object, in the order of the document
	Path   string   // JSON Pointer
	At     int64    // offset in the document
}

// A Member is one field of an object.
type Member struct {
	Name  string
	Value *Node
}

// Field returns the value of a field, or nil.
func (n *Node) Field(name string) *Node {
	for i := range n.Fields {
		if n.Fields[i].Name == name {
			return n.Fields[i].Value
		}
	}
	return nil
}

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

// Parse parses a JSON text of at most most bytes. For invalid JSON, it adds the errors to r and returns nil.
func (r *Report) Parse(data []byte, most int) *Node {
	root := &Node{}
	if len(data) > most {
		r.AddAt(root, fmt.Sprintf("the file has %d bytes, the maximum is %d", len(data), most), "")
		return nil
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !utf8.Valid(data) {
		r.AddAt(root, "the file is not UTF-8 text", "")
		return nil
	}
	var raw json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		r.AddAt(root, "not JSON: "+describeSyntaxError(data, err), "")
		return nil
	}
	p := treeParser{report: r, dec: json.NewDecoder(bytes.NewReader(data))}
	p.dec.UseNumber()
	if root = p.parseValue("", 0); p.tooDeep {
		return nil
	}
	return root
}

func describeSyntaxError(data []byte, err error) string {
	var se *json.SyntaxError
	if !errors.As(err, &se) {
		return err.Error()
	}
	before := data[:min(max(int(se.Offset)-1, 0), len(data))]
	line, column := 1+bytes.Count(before, []byte("\n")), 1+utf8.RuneCount(before[1+bytes.LastIndexByte(before, '\n'):])
	return fmt.Sprintf("%s in line %d, column %d", strings.TrimPrefix(se.Error(), "json: "), line, column)
}

// A treeParser converts the tokens of a valid JSON text to nodes.
type treeParser struct {
	report  *Report
	dec     *json.Decoder
	tooDeep bool
}

func (p *treeParser) parseValue(path string, depth int) *Node {
	n := &Node{Path: path}
	token, err := p.dec.Token()
	n.At = p.dec.InputOffset()
	if err != nil {
		return n // impossible: the text was valid
	}
	switch v := token.(type) {
	case bool:
		n.Kind, n.Text = KindBool, strconv.FormatBool(v)
	case json.Number:
		n.Kind, n.Text = KindNumber, v.String()
	case string:
		n.Kind, n.Text = KindText, v
	case json.Delim:
		if depth >= maxDepth {
			if !p.tooDeep {
				p.report.AddAt(n, fmt.Sprintf("lists and objects nest deeper than %d", maxDepth), "")
			}
			p.tooDeep = true
			return n
		}
		if n.Kind = KindList; v == '{' {
			n.Kind = KindObject
		}
		p.parseChildren(n, depth)
	}
	return n
}

func (p *treeParser) parseChildren(n *Node, depth int) {
	var seen map[string]bool
	if n.Kind == KindObject {
		seen = map[string]bool{}
	}
	for i := 0; !p.tooDeep && p.dec.More(); i++ {
		if n.Kind == KindList {
			n.List = append(n.List, p.parseValue(n.Path+"/"+strconv.Itoa(i), depth+1))
			continue
		}
		token, _ := p.dec.Token()
		name, _ := token.(string)
		value := p.parseValue(n.Path+"/"+pointerEscaper.Replace(name), depth+1)
		if seen[name] {
			p.report.AddAt(value, fmt.Sprintf("field %q is given twice", name), "remove one of them")
			continue
		}
		seen[name] = true
		n.Fields = append(n.Fields, Member{name, value})
	}
	if !p.tooDeep {
		_, _ = p.dec.Token() // the closing bracket
	}
}

// AppendJSON appends n as JSON. [Report.Parse] restores n from it.
func (n *Node) AppendJSON(dst []byte) []byte {
	text := func(s string) []byte {
		b, _ := json.Marshal(s) // never fails
		return b
	}
	switch n.Kind {
	case KindNull:
		return append(dst, "null"...)
	case KindBool, KindNumber:
		return append(dst, n.Text...)
	case KindText:
		return append(dst, text(n.Text)...)
	case KindList:
		dst = append(dst, '[')
		for i, item := range n.List {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = item.AppendJSON(dst)
		}
		return append(dst, ']')
	}
	dst = append(dst, '{')
	for i, f := range n.Fields {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(dst, text(f.Name)...), ':')
		dst = f.Value.AppendJSON(dst)
	}
	return append(dst, '}')
}
