// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"go/ast"
	"slices"
)

// pureImports are all that package bucket may import: nothing that knows the
// time or the world outside.
var pureImports = []string{
	"cmp", "errors", "fmt", "math", "math/big", "math/bits", "slices", "strconv", "strings", "time",
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

// checkSleep allows a sleep inside a synctest bubble, where it takes no time,
// and in benchmarks of other programs.
func checkSleep(t *tree) []finding {
	var found []finding
	for _, f := range t.files {
		if contains("bench", f.dir) {
			continue
		}
		var bubbles []ast.Node
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && isSelector(call.Fun, "synctest", "Test") {
				bubbles = append(bubbles, call)
			}
			return true
		})
		eachSelector(f.syntax, func(receiver, name string, n ast.Node) {
			inBubble := slices.ContainsFunc(bubbles, func(b ast.Node) bool {
				return b.Pos() <= n.Pos() && n.End() <= b.End()
			})
			if receiver == "time" && name == "Sleep" && !inBubble {
				found = append(found, finding{t.at(n.Pos()), "time.Sleep"})
			}
		})
	}
	return found
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

// eachSelector calls visit for every receiver.name in root.
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
