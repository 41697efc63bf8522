// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	gotypes "go/types"
	"slices"
	"strings"
)

// pureImports are the allowed imports of package bucket: nothing with a clock or I/O.
var pureImports = []string{
	"cmp", "errors", "fmt", "math", "math/big", "math/bits", "slices", "strconv", "strings", "time",
	"github.com/metehq/mete/internal/almanac", // the time zone database, behind a cache
}

// clockCalls are the functions of package time that read a clock or wait.
var clockCalls = []string{
	"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTicker", "NewTimer",
}

func checkPure(t *tree) []finding {
	var found []finding
	for _, f := range t.files {
		if !contains("bucket", f.dir) {
			continue
		}
		for _, p := range f.imports() {
			if !f.isTest() && !slices.Contains(pureImports, p) {
				found = append(found, finding{f.path, fmt.Sprintf("bucket must not import %s", p)})
			}
		}
		eachSelector(f.syntax, func(receiver, name string, n ast.Node) {
			if receiver == "time" && slices.Contains(clockCalls, name) {
				found = append(found, finding{t.at(n.Pos()), fmt.Sprintf("bucket must not use time.%s", name)})
			}
		})
	}
	return found
}

// checkSleep rejects every wait for time alone. It allows time.Sleep in a synctest bubble, where it takes no
// time, and in benchmarks of other programs.
func checkSleep(t *tree) []finding {
	var found []finding
	for _, f := range t.files {
		if contains("bench", f.dir) {
			continue
		}
		bubbles, bounds := bubblesOf(f), boundsOf(f)
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && isSelector(s, "time", "Sleep") && !isWithin(n, bubbles) {
				found = append(found, finding{t.at(n.Pos()), "time.Sleep"})
			}
			if timer := receivedTimer(n); timer != "" && !isWithin(n, bounds) {
				found = append(found, finding{t.at(n.Pos()), "<-" + timer})
			}
			return true
		})
	}
	return found
}

// bubblesOf returns the parts of f that run in bubbles: the calls of synctest.Test, and the helpers of tests
// in files that import testing/synctest.
func bubblesOf(f *file) []ast.Node {
	var bubbles []ast.Node
	inBubbles := f.isTest() && slices.Contains(f.imports(), "testing/synctest")
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if isSelector(n.Fun, "synctest", "Test") {
				bubbles = append(bubbles, n)
			}
		case *ast.FuncDecl:
			if inBubbles && !isTestName(n.Name.Name) {
				bubbles = append(bubbles, n)
			}
		}
		return true
	})
	return bubbles
}

// boundsOf returns the receives in selects with another case: there a timer bounds the wait.
func boundsOf(f *file) []ast.Node {
	var bounds []ast.Node
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectStmt); ok && len(s.Body.List) > 1 {
			for _, c := range s.Body.List {
				if comm := c.(*ast.CommClause).Comm; comm != nil {
					bounds = append(bounds, comm)
				}
			}
		}
		return true
	})
	return bounds
}

// receivedTimer returns the channel of package time that n receives from, or "". It is time.After(d), or the
// field C of a timer or ticker.
func receivedTimer(n ast.Node) string {
	receive, ok := n.(*ast.UnaryExpr)
	if !ok || receive.Op != token.ARROW {
		return ""
	}
	switch channel := receive.X.(type) {
	case *ast.SelectorExpr:
		if channel.Sel.Name == "C" {
			return gotypes.ExprString(channel)
		}
	case *ast.CallExpr:
		if isSelector(channel.Fun, "time", "After") || isSelector(channel.Fun, "time", "Tick") {
			return gotypes.ExprString(channel)
		}
	}
	return ""
}

func isTestName(name string) bool {
	return slices.ContainsFunc([]string{"Test", "Benchmark", "Fuzz", "Example"}, func(prefix string) bool {
		return strings.HasPrefix(name, prefix)
	})
}

func isWithin(n ast.Node, nodes []ast.Node) bool {
	return slices.ContainsFunc(nodes, func(o ast.Node) bool { return o.Pos() <= n.Pos() && n.End() <= o.End() })
}

func checkSkip(t *tree) []finding {
	var found []finding
	for _, f := range t.files {
		eachSelector(f.syntax, func(receiver, name string, n ast.Node) {
			isTesting := slices.Contains([]string{"t", "b", "f", "tb"}, receiver)
			if isTesting && slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, name) {
				found = append(found, finding{t.at(n.Pos()), receiver + "." + name})
			}
		})
	}
	return found
}

func eachSelector(root ast.Node, visit func(receiver, name string, n ast.Node)) {
	ast.Inspect(root, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok {
				visit(x.Name, s.Sel.Name, s)
			}
		}
		return true
	})
}

func isSelector(e ast.Expr, receiver, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == receiver && s.Sel.Name == name
}
