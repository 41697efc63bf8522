// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"testing"
)

// rootLayers are the files of the root package, from the bottom up. A file may use only declarations of its
// own layer and of lower ones, so that readers follow a take from the top down.
var rootLayers = [][]string{
	{"doc.go", "errors.go", "store.go", "tokens.go"},
	{"decision.go", "parts.go", "request.go"},
	{"config.go"},
	{"limiter.go"},
	{"attempts.go"},
	{"evaluate.go", "evaluate_parts.go", "evaluate_slots.go"},
	{"hooks.go", "storecalls.go"},
	{"receipt.go"},
	{"steps.go"},
	{"outage.go", "slots.go"},
	{"take.go"},
	{"bucket.go", "explain.go", "hold.go", "hold_usage.go", "queue.go", "refund.go", "reservation.go"},
	{"wait.go"},
	{"finish.go"},
	{"stream.go"},
}

// rootFields are types of higher files that a file may use for fields.
var rootFields = map[string][]string{"limiter.go": {"queues"}, "decision.go": {"Slots"}}

// checkRootLayers finds uses of higher layers in the root package. It checks methods only if they are
// unexported and their name is unique.
func checkRootLayers(t *tree) []finding {
	level := map[string]int{}
	for i, files := range rootLayers {
		for _, name := range files {
			level[name] = i + 1
		}
	}
	declared, methods := map[string]string{}, map[string][]string{}
	var files []*file
	for _, f := range t.files {
		if f.dir != "." || f.isTest() || level[path.Base(f.path)] == 0 {
			continue
		}
		files = append(files, f)
		for _, d := range f.syntax.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Recv != nil {
				methods[d.Name.Name] = append(methods[d.Name.Name], f.path)
			}
		}
		for name := range f.syntax.Scope.Objects {
			declared[name] = f.path
		}
	}
	var found []finding
	for _, f := range files {
		use := func(name, in string) {
			if in != "" && level[path.Base(in)] > level[path.Base(f.path)] && !slices.Contains(rootFields[f.path], name) {
				found = append(found, finding{f.path, fmt.Sprintf("uses %s of %s, which is above it", name, in)})
			}
		}
		for _, name := range f.syntax.Unresolved {
			use(name.Name, declared[name.Name])
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && !s.Sel.IsExported() && len(methods[s.Sel.Name]) == 1 {
				use(s.Sel.Name, methods[s.Sel.Name][0])
			}
			return true
		})
	}
	return found
}

// Every file of the root package has a layer.
func TestRootLayers_AreComplete(t *testing.T) {
	var listed []string
	for _, files := range rootLayers {
		listed = append(listed, files...)
	}
	for _, f := range loadRepository(t).files {
		if f.dir == "." && !f.isTest() && !slices.Contains(listed, f.path) {
			t.Errorf("%s has no layer: give it a place in rootLayers", f.path)
		}
	}
}

func TestRootLayers_Broken(t *testing.T) {
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  int
	}{
		{"downwards", map[string]string{"tokens.go": source("m", "func low() {}"), "wait.go": source("m", "func high() { low() }")}, 0},
		{"upwards", map[string]string{"tokens.go": source("m", "func low() { high() }"), "wait.go": source("m", "func high() {}")}, 1},
		{"a method", map[string]string{"tokens.go": source("m", "func low(t T) { t.up() }"), "wait.go": source("m", "type T int; func (T) up() {}")}, 2},
	} {
		if found := checkRootLayers(loadFiles(t, tt.files)); len(found) != tt.want {
			t.Errorf("%s: found %v, want %d findings", tt.name, found, tt.want)
		}
	}
}
