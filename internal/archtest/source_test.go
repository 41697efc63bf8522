// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"slices"
	"strings"
)

const (
	spdxLine         = "// SPDX-License-Identifier: Apache-2.0"
	maxFileLines     = 500
	maxFunctionLines = 70
	longMark         = "long:" // starts the reason in the comment of a longer function
)

// vagueNames name a kind of content instead of its subject.
var vagueNames = []string{
	"util", "utils", "helper", "helpers", "common", "types", "constants", "consts",
	"misc", "shared", "impl", "base", "models", "interfaces",
}

func checkLicense(t *tree) []finding {
	var found []finding
	for _, f := range t.files {
		if !strings.HasPrefix(f.source, spdxLine+"\n") {
			found = append(found, finding{f.path, fmt.Sprintf("must start with %q", spdxLine)})
		}
	}
	return found
}

func checkNames(t *tree) []finding {
	var found []finding
	dirs := map[string]bool{}
	for _, f := range t.files {
		name := strings.TrimSuffix(strings.TrimSuffix(path.Base(f.path), ".go"), "_test")
		if slices.Contains(vagueNames, name) {
			found = append(found, finding{f.path, "name the file after its content"})
		}
		if !dirs[f.dir] && slices.Contains(vagueNames, path.Base(f.dir)) {
			found = append(found, finding{f.dir, "name the package after its content"})
		}
		dirs[f.dir] = true
	}
	return found
}

// checkPackageDocs requires one package comment per directory outside of tests. It starts with "Package
// name", or with the name of the command.
func checkPackageDocs(t *tree) []finding {
	var found []finding
	documented := map[string][]string{} // by directory: the files with a package comment
	for _, f := range t.files {
		if f.isTest() {
			continue
		}
		documented[f.dir] = append(documented[f.dir], nil...)
		if f.syntax.Doc == nil {
			continue
		}
		documented[f.dir] = append(documented[f.dir], f.path)
		name := f.syntax.Name.Name
		if text := f.syntax.Doc.Text(); name != "main" && !strings.HasPrefix(text, "Package "+name+" ") {
			found = append(found, finding{f.path, fmt.Sprintf("the package comment must begin with %q", "Package "+name)})
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(documented)) {
		files := documented[dir]
		if len(files) != 1 {
			found = append(found, finding{dir, fmt.Sprintf("has %d package comments %v, want 1", len(files), files)})
		}
	}
	return found
}

// checkSizes ignores tests, because a table is as long as its cases.
func checkSizes(t *tree) []finding {
	var found []finding
	for _, f := range t.files {
		if f.isTest() {
			continue
		}
		if n := strings.Count(f.source, "\n"); n > maxFileLines {
			found = append(found, finding{f.path, fmt.Sprintf("has %d lines, want at most %d", n, maxFileLines)})
		}
		for _, d := range f.syntax.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || strings.Contains(fn.Doc.Text(), longMark) {
				continue
			}
			if n := t.fset.Position(fn.End()).Line - t.fset.Position(fn.Pos()).Line + 1; n > maxFunctionLines {
				found = append(found, finding{t.at(fn.Pos()), fmt.Sprintf(
					"%s has %d lines, want at most %d or a reason: // long: …", fn.Name.Name, n, maxFunctionLines)})
			}
		}
	}
	return found
}
