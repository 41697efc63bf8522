// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// A tree is the source of the repository.
type tree struct {
	fset    *token.FileSet
	work    workfile
	modules []*module // the root module first
	files   []*file
}

// A module is a go.mod file.
type module struct {
	dir      string // "." for the root
	path     string
	version  string // the go directive
	requires []string
	replaces []string // the replaced paths
}

// A workfile is go.work.
type workfile struct {
	version string
	uses    []string // directories as modules have them
}

// A file is a Go file outside testdata.
type file struct {
	path   string // from the root of the repository
	dir    string
	module *module
	source string
	syntax *ast.File
}

func (f *file) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// imports returns f's import paths in order.
func (f *file) imports() []string {
	var paths []string
	for _, spec := range f.syntax.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil {
			paths = append(paths, p)
		}
	}
	return paths
}

// root returns the module in the root directory.
func (t *tree) root() *module { return t.modules[0] }

// own returns the directory of one of our packages, such as "policy", or "." for the root package.
func (t *tree) own(importPath string) (dir string, ok bool) {
	if importPath == t.root().path {
		return ".", true
	}
	return strings.CutPrefix(importPath, t.root().path+"/")
}

// at returns pos as path:line.
func (t *tree) at(pos token.Pos) string {
	p := t.fset.Position(pos)
	return fmt.Sprintf("%s:%d", p.Filename, p.Line)
}

// load reads the repository in fsys.
func load(fsys fs.FS) (*tree, error) {
	t := &tree{fset: token.NewFileSet()}
	var sources []string
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && isIgnored(d.Name()):
			return fs.SkipDir
		case d.Name() == "go.mod":
			return t.addModule(fsys, name)
		case strings.HasSuffix(name, ".go"):
			sources = append(sources, name)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(t.modules) == 0 || t.modules[0].dir != "." {
		return nil, fmt.Errorf("archtest: no go.mod at the root")
	}
	for _, name := range sources {
		if err := t.addFile(fsys, name); err != nil {
			return nil, err
		}
	}
	text, err := fs.ReadFile(fsys, "go.work")
	if err != nil {
		return nil, err
	}
	t.work = parseWork(string(text))
	return t, nil
}

// isIgnored reports whether the go command ignores a directory.
func isIgnored(dir string) bool {
	return dir == "testdata" || dir == "vendor" || dir == "node_modules" ||
		len(dir) > 1 && (dir[0] == '.' || dir[0] == '_')
}

func (t *tree) addModule(fsys fs.FS, name string) error {
	text, err := fs.ReadFile(fsys, name)
	if err != nil {
		return err
	}
	m := parseModule(string(text))
	m.dir = path.Dir(name)
	t.modules = append(t.modules, m)
	slices.SortFunc(t.modules, func(a, b *module) int { return strings.Compare(a.dir, b.dir) })
	return nil
}

func (t *tree) addFile(fsys fs.FS, name string) error {
	source, err := fs.ReadFile(fsys, name)
	if err != nil {
		return err
	}
	syntax, err := parser.ParseFile(t.fset, name, source, parser.ParseComments)
	if err != nil {
		return err
	}
	f := &file{path: name, dir: path.Dir(name), source: string(source), syntax: syntax}
	f.module = t.root()
	for _, m := range t.modules[1:] {
		if f.dir == m.dir || strings.HasPrefix(f.dir, m.dir+"/") {
			f.module = m
		}
	}
	t.files = append(t.files, f)
	return nil
}
