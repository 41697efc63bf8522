// SPDX-License-Identifier: Apache-2.0

// Package yamltree parses YAML files into trees with positions. Scalars keep their text, and mappings keep
// their duplicate fields and the order of fields. A caller can therefore report every error with its position.
//
//	root, err := yamltree.Parse(data)
//
// The input is one document of YAML 1.2 in UTF-8. The package rejects keys that begin with ?, text that the
// underlying parser would misread, nesting beyond [MaxDepth], and mappings with more than [MaxFields] fields.
package yamltree

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

const (
	// MaxDepth bounds the nesting of lists and mappings, because the parser is recursive.
	MaxDepth = 64

	// MaxFields bounds the fields of one mapping, because the parser takes quadratic time.
	MaxFields = 10_000
)

// A Kind is a kind of [Node].
type Kind int

const (
	Scalar  Kind = iota // a text, number, boolean or null
	List                // Items has the values
	Mapping             // Fields has the keys and values
	Alias               // Target has the value
)

// A Node is a value or a key.
type Node struct {
	Kind         Kind
	Line, Column int // from 1, columns in characters

	// Value is the text of a scalar without its quotes, or the name of an alias.
	Value string

	// Plain reports whether a scalar has neither quotes nor a tag, so that the text determines its type.
	Plain bool

	Tag    string  // such as "!!str"; may be empty
	Items  []*Node // of a list
	Fields []Field // of a mapping
	Target *Node   // of an alias; it may contain the alias
}

// A Field is a key of a mapping with its value.
type Field struct{ Key, Value *Node }

// IsNull reports whether a scalar is null, or a value is missing.
func (n *Node) IsNull() bool {
	return n.Kind == Scalar && n.Plain && slices.Contains([]string{"", "~", "null", "Null", "NULL"}, n.Value)
}

// Resolve returns the target of an alias, or n.
func (n *Node) Resolve() *Node {
	if n.Kind == Alias {
		return n.Target
	}
	return n
}

// A SyntaxError is the first error that makes a file invalid YAML. It does not quote the file, which may contain
// secrets.
type SyntaxError struct {
	Line, Column int    // from 1
	Reason, Hint string // the hint may be empty
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Reason) }

// Parse returns the root of the document in data, or nil if data has only comments. Every error is a
// [*SyntaxError].
func Parse(data []byte) (root *Node, err error) {
	if e := CheckText(data); e != nil {
		return nil, e
	}
	tokens, colon := tokenize(data)
	if e := checkTokens(tokens); e != nil {
		return nil, e
	}
	// An edited policy must not crash a running server, so a panic of the parser becomes an error.
	defer func() {
		if recover() != nil {
			root, err = nil, &SyntaxError{Line: 1, Column: 1, Reason: "the structure cannot be parsed"}
		}
	}()
	file, parseErr := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if parseErr != nil {
		return nil, newSyntaxError(parseErr)
	}
	for i, doc := range file.Docs {
		if _, directive := doc.Body.(*ast.DirectiveNode); directive {
			continue
		}
		if i > 0 && (doc.Start != nil || doc.Body != nil) && !isDirective(file.Docs[i-1]) {
			at := cmp.Or(doc.Start, bodyToken(doc.Body)).Position
			return nil, &SyntaxError{Line: at.Line, Column: at.Column, Reason: SecondDocument}
		}
		if doc.Body == nil {
			continue
		}
		b := builder{anchors: map[string]*Node{}, colon: string(colon), cut: len(bytes.TrimSpace(data[bytes.LastIndexByte(data, '\n')+1:])) > 0}
		root = b.newNode(doc.Body)
		if b.err != nil {
			return nil, b.err
		}
	}
	if root != nil && root.IsNull() {
		return nil, nil
	}
	return root, nil
}

// SecondDocument is the reason of a [SyntaxError] for a file with several documents.
const SecondDocument = "a second document begins here"

// bodyToken returns the first token of a document without a start marker, or nil.
func bodyToken(body ast.Node) *token.Token {
	switch body := body.(type) {
	case nil:
		return nil
	case *ast.MappingNode:
		if len(body.Values) > 0 && !body.IsFlowStyle { // its own token is a colon
			return body.Values[0].Key.GetToken()
		}
	}
	return body.GetToken()
}

func isDirective(doc *ast.DocumentNode) bool {
	_, ok := doc.Body.(*ast.DirectiveNode)
	return ok
}

type builder struct {
	anchors map[string]*Node // the replacement of a colon: see tokenize
	colon   string           // the last line of the file has no line feed, although tokenize adds one
	cut     bool             // the last line of the file has no line feed, although tokenize adds one
	err     *SyntaxError     // the first
}

func (b *builder) newNode(n ast.Node) *Node {
	made := new(Node)
	b.fill(made, n)
	if made.Kind != Mapping && made.Kind != List && strings.Contains(made.Value+made.Tag, b.colon) {
		made.Value, made.Tag = strings.ReplaceAll(made.Value, b.colon, ":"), strings.ReplaceAll(made.Tag, b.colon, ":")
	}
	return made
}

func (b *builder) fill(made *Node, n ast.Node) {
	switch n := n.(type) {
	case *ast.AnchorNode:
		// The value can contain aliases of the anchor.
		b.anchors[n.Name.GetToken().Value] = made
		b.fill(made, n.Value)
		return
	case *ast.TagNode:
		if n.Value != nil {
			b.fill(made, n.Value)
		}
		at := n.GetToken()
		made.Line, made.Column, made.Tag, made.Plain = at.Position.Line, at.Position.Column, at.Value, false
		return
	case *ast.MappingKeyNode:
		b.fill(made, n.Value)
		return
	}
	if n == nil {
		return
	}
	tk := n.GetToken()
	made.Line, made.Column = tk.Position.Line, tk.Position.Column
	switch n := n.(type) {
	case *ast.MappingNode:
		made.Kind = Mapping
		for _, v := range n.Values {
			b.addField(made, v)
		}
		if !n.IsFlowStyle && len(made.Fields) > 0 { // the token is the colon
			made.Line, made.Column = made.Fields[0].Key.Line, made.Fields[0].Key.Column
		}
	case *ast.MappingValueNode:
		made.Kind = Mapping
		b.addField(made, n)
		made.Line, made.Column = made.Fields[0].Key.Line, made.Fields[0].Key.Column
	case *ast.SequenceNode:
		made.Kind = List
		for _, item := range n.Values {
			made.Items = append(made.Items, b.newNode(item))
		}
	case *ast.AliasNode:
		name := n.Value.GetToken().Value
		made.Kind, made.Value, made.Target = Alias, name, b.anchors[name]
		if made.Target == nil {
			b.fail(made, "unknown anchor", "put a value that begins with * in quotes")
		}
	case *ast.LiteralNode:
		made.Value = n.Value.Value
		if n.Value.GetToken().Next == nil && (b.cut || strings.Contains(n.Start.Value, "+")) { // see tokenize
			made.Value = strings.TrimSuffix(made.Value, "\n")
		}
	case *ast.StringNode:
		made.Value, made.Plain = n.Value, tk.Type != token.SingleQuoteType && tk.Type != token.DoubleQuoteType
	case *ast.NullNode:
		made.Plain = true
		if tk.Type != token.ImplicitNullType {
			made.Value = tk.Value
		}
	case ast.ScalarNode:
		made.Value, made.Plain = tk.Value, true
	default:
		b.fail(made, "not a value", "")
	}
}

func (b *builder) addField(made *Node, v *ast.MappingValueNode) {
	made.Fields = append(made.Fields, Field{b.newNode(v.Key), b.newNode(v.Value)})
}

func (b *builder) fail(at *Node, reason, hint string) {
	if b.err == nil {
		b.err = &SyntaxError{at.Line, at.Column, reason, hint}
	}
}
