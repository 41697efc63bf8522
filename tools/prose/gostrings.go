// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
)

// goStrings returns the string literals of two or more words in a Go file: errors, log lines, help and descriptions.
// A sum of strings is one text, in which other operands are "x".
func goStrings(source string) ([]fragment, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", source, 0)
	if err != nil {
		return nil, err
	}
	var all []fragment
	add := func(parts []ast.Expr) {
		var b strings.Builder
		line, single := 0, true
		for _, p := range parts {
			at := fset.Position(p.Pos()).Line
			words := "x"
			if lit, isLit := p.(*ast.BasicLit); isLit {
				words, _ = strconv.Unquote(lit.Value)
				single = single && lit.Value[0] == '"'
			}
			if line == 0 {
				line = at
			}
			b.WriteString(words)
		}
		if isProse(b.String()) {
			words := b.String()
			if single { // An error consists of clauses, which may be long together.
				words = strings.NewReplacer("; ", ";\n\n", ": ", ":\n\n").Replace(words)
			}
			all = append(all, fragment{line: line, text: words, single: single})
		}
	}
	var visit func(n ast.Node) bool
	visit = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			ast.Inspect(n.Type, visit)
			return false // not the tag
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				add([]ast.Expr{n})
			}
		case *ast.BinaryExpr:
			parts := operands(n)
			if n.Op != token.ADD || !hasLiteral(parts) {
				return true
			}
			add(parts)
			for _, p := range parts {
				if _, isLit := p.(*ast.BasicLit); !isLit {
					ast.Inspect(p, visit)
				}
			}
			return false
		}
		return true
	}
	ast.Inspect(file, visit)
	return all, nil
}

func operands(e ast.Expr) []ast.Expr {
	if b, isSum := e.(*ast.BinaryExpr); isSum && b.Op == token.ADD {
		return append(operands(b.X), operands(b.Y)...)
	}
	return []ast.Expr{e}
}

func hasLiteral(parts []ast.Expr) bool {
	for _, p := range parts {
		if lit, isLit := p.(*ast.BasicLit); isLit && lit.Kind == token.STRING {
			return true
		}
	}
	return false
}
