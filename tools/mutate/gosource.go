// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
)

// goOperators are the replacements of Go's operators. A comparison of order changes at its boundary only: tests that
// detect this change detect the negation, too.
var goOperators = map[token.Token]string{
	token.LSS:        "<=",
	token.LEQ:        "<",
	token.GTR:        ">=",
	token.GEQ:        ">",
	token.EQL:        "!=",
	token.NEQ:        "==",
	token.LAND:       "||",
	token.LOR:        "&&",
	token.ADD:        "-",
	token.SUB:        "+",
	token.MUL:        "/",
	token.QUO:        "*",
	token.REM:        "*",
	token.ADD_ASSIGN: "-=",
	token.SUB_ASSIGN: "+=",
	token.MUL_ASSIGN: "/=",
	token.QUO_ASSIGN: "*=",
	token.INC:        "--",
	token.DEC:        "++",
}

// goWords are the replacements of predeclared names.
var goWords = map[string]string{"min": "max", "max": "min", "true": "false", "false": "true"}

// goMutants returns the mutants of a Go file. Without types, some of them do not compile.
func goMutants(file string, source []byte) ([]mutant, error) {
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	c := collector{file: file, source: source}
	for _, d := range parsed.Decls {
		g := &goFinder{collector: &c, offset: func(p token.Pos) int { return fset.Position(p).Offset }}
		if fn, ok := d.(*ast.FuncDecl); ok {
			g.function = nameFunction(fn)
		}
		ast.Inspect(d, g.visit)
	}
	return c.list(), nil
}

// nameFunction returns the name of a function, or Type.Name of a method.
func nameFunction(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return fn.Name.Name
	}
	receiver := fn.Recv.List[0].Type
	for {
		switch t := receiver.(type) {
		case *ast.StarExpr:
			receiver = t.X
		case *ast.IndexExpr:
			receiver = t.X
		case *ast.IndexListExpr:
			receiver = t.X
		case *ast.Ident:
			return t.Name + "." + fn.Name.Name
		default:
			return fn.Name.Name
		}
	}
}

// A goFinder finds the mutants of one declaration.
type goFinder struct {
	*collector
	function string
	offset   func(token.Pos) int
}

func (g *goFinder) replace(from token.Pos, length int, text string) {
	at := g.offset(from)
	g.add(g.function, at, at+length, text, text)
}

// visit adds the mutants at one node. It returns false for nodes whose parts change nothing that a test can observe.
func (g *goFinder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		g.visitBinary(n)
	case *ast.IncDecStmt:
		g.replace(n.TokPos, len(n.Tok.String()), goOperators[n.Tok])
	case *ast.AssignStmt:
		if text, ok := goOperators[n.Tok]; ok {
			g.replace(n.TokPos, len(n.Tok.String()), text)
		}
	case *ast.IfStmt:
		g.negate(n.Cond)
	case *ast.ForStmt:
		g.negate(n.Cond)
	case *ast.SwitchStmt:
		if n.Tag == nil {
			for _, clause := range n.Body.List {
				for _, cond := range clause.(*ast.CaseClause).List {
					g.negate(cond)
				}
			}
		}
	case *ast.BlockStmt:
		g.removeEach(n.List)
	case *ast.CaseClause:
		g.removeEach(n.Body)
	case *ast.CommClause:
		g.removeEach(n.Body)
	case *ast.CallExpr:
		return g.visitCall(n)
	case *ast.BasicLit:
		g.visitNumber(n)
	case *ast.Ident:
		if n.Name == "true" || n.Name == "false" {
			g.replace(n.Pos(), len(n.Name), goWords[n.Name])
		}
	case *ast.ArrayType, *ast.ImportSpec:
		return false
	}
	return true
}

func (g *goFinder) visitBinary(n *ast.BinaryExpr) {
	if isText(n.X) || isText(n.Y) {
		return
	}
	if text, ok := goOperators[n.Op]; ok {
		g.replace(n.OpPos, len(n.Op.String()), text)
	}
	if n.Op == token.LAND || n.Op == token.LOR {
		g.negate(n.X)
		g.negate(n.Y)
	}
}

// isText reports whether an expression is certainly a string.
func isText(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e.Kind == token.STRING
	case *ast.BinaryExpr:
		return e.Op == token.ADD && (isText(e.X) || isText(e.Y))
	}
	return false
}

// negate negates a condition that has no operator to change.
func (g *goFinder) negate(cond ast.Expr) {
	if cond == nil {
		return
	}
	from, to := g.offset(cond.Pos()), g.offset(cond.End())
	switch e := ast.Unparen(cond).(type) {
	case *ast.BinaryExpr:
	case *ast.UnaryExpr:
		g.add(g.function, from, to, string(g.source[g.offset(e.X.Pos()):g.offset(e.X.End())]), "negated")
	case *ast.Ident:
		if e.Name != "true" && e.Name != "false" {
			g.add(g.function, from, to, "!"+string(g.source[from:to]), "negated")
		}
	default:
		g.add(g.function, from, to, "!"+string(g.source[from:to]), "negated")
	}
}

// removeEach removes each assignment and each call among the statements. A branch that never runs keeps the uses of
// variables and imports, so that the mutant compiles.
func (g *goFinder) removeEach(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt:
		case *ast.IncDecStmt:
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE || isBlank(s.Lhs) {
				continue
			}
		default:
			continue
		}
		from, to := g.offset(s.Pos()), g.offset(s.End())
		g.add(g.function, from, to, "if false { "+string(g.source[from:to])+" }", "")
	}
}

func isBlank(list []ast.Expr) bool {
	return !slices.ContainsFunc(list, func(e ast.Expr) bool {
		name, ok := e.(*ast.Ident)
		return !ok || name.Name != "_"
	})
}

// visitCall exchanges min and max. It skips panics, whose texts no test should need, and the sizes in make.
func (g *goFinder) visitCall(n *ast.CallExpr) bool {
	name, ok := n.Fun.(*ast.Ident)
	if !ok {
		return true
	}
	switch name.Name {
	case "min", "max":
		if len(n.Args) > 1 {
			g.replace(name.Pos(), len(name.Name), goWords[name.Name])
		}
	case "panic":
		return false
	case "make":
		if len(n.Args) > 1 {
			ast.Inspect(n.Args[1], g.visit) // a capacity changes nothing
		}
		return false
	}
	return true
}

func (g *goFinder) visitNumber(n *ast.BasicLit) {
	if n.Kind != token.INT {
		return
	}
	if text, ok := otherNumber(n.Value); ok {
		g.replace(n.Pos(), len(n.Value), text)
	}
}

// otherNumber returns the replacement of an integer: the next one, and 0 for 1.
func otherNumber(text string) (string, bool) {
	n, err := strconv.ParseInt(text, 0, 64)
	if err != nil {
		return "", false
	}
	if n == 1 {
		return "0", true
	}
	return strconv.FormatInt(n+1, 10), true
}
