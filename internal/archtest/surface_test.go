// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/printer"
	"go/token"
	"path"
	"slices"
	"strings"
)

// A surface is the exported API of a package.
type surface struct {
	lines []string // sorted, one per exported name, field and method

	// names are the exported identifiers of the package, without the constants of its own types.
	names []string
}

// surfaces returns the surface of every public package, by directory.
func surfaces(t *tree) map[string]*surface {
	found := map[string]*surface{}
	for _, f := range t.files {
		if f.isTest() || !isPublic(f) {
			continue
		}
		s := found[f.dir]
		if s == nil {
			s = new(surface)
			found[f.dir] = s
		}
		for _, d := range f.syntax.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				s.addFunc(d)
			case *ast.GenDecl:
				s.addDecl(d)
			}
		}
	}
	for _, s := range found {
		slices.Sort(s.lines)
		slices.Sort(s.names)
		// A declaration for several systems counts once.
		s.lines, s.names = slices.Compact(s.lines), slices.Compact(s.names)
	}
	return found
}

// unpublished are the directories and modules without users.
var unpublished = []string{"bench", "cmd", "examples", "proof", "tools"}

func isPublic(f *file) bool {
	parts := strings.Split(f.dir, "/")
	return f.syntax.Name.Name != "main" && !slices.Contains(parts, "internal") && !slices.Contains(unpublished, parts[0])
}

func (s *surface) addFunc(d *ast.FuncDecl) {
	if !d.Name.IsExported() {
		return
	}
	if d.Recv == nil {
		s.names = append(s.names, d.Name.Name)
		s.add("func %s%s%s", d.Name.Name, typeParams(d.Type.TypeParams), signature(d.Type))
		return
	}
	receiver := d.Recv.List[0].Type
	if ast.IsExported(baseName(receiver)) {
		s.add("method (%s) %s%s", text(receiver), d.Name.Name, signature(d.Type))
	}
}

func (s *surface) addDecl(d *ast.GenDecl) {
	var last *ast.ValueSpec // repeated by constants without a value
	for i, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if spec.Name.IsExported() {
				s.names = append(s.names, spec.Name.Name)
				s.addType(spec)
			}
		case *ast.ValueSpec:
			if d.Tok == token.VAR {
				s.addVars(spec)
				continue
			}
			if len(spec.Values) > 0 || last == nil {
				last = spec
			}
			s.addConsts(spec, last, i)
		}
	}
}

// addVars omits values, which are not part of the API.
func (s *surface) addVars(spec *ast.ValueSpec) {
	for _, name := range spec.Names {
		if !name.IsExported() {
			continue
		}
		s.names = append(s.names, name.Name)
		s.add("var %s", strings.TrimSpace(name.Name+" "+text(spec.Type)))
	}
}

func (s *surface) addConsts(spec, last *ast.ValueSpec, iota int) {
	for i, name := range spec.Names {
		if !name.IsExported() {
			continue
		}
		if own, ok := last.Type.(*ast.Ident); !ok || !own.IsExported() {
			s.names = append(s.names, name.Name)
		}
		value := ""
		if i < len(last.Values) {
			value = strings.ReplaceAll(text(last.Values[i]), "iota", fmt.Sprint(iota))
		}
		s.add("const %s = %s", strings.TrimSpace(name.Name+" "+text(last.Type)), value)
	}
}

func (s *surface) addType(spec *ast.TypeSpec) {
	name := spec.Name.Name
	head := "type " + name + typeParams(spec.TypeParams)
	switch t := spec.Type.(type) {
	case *ast.StructType:
		s.add("%s struct", head)
		for _, f := range t.Fields.List {
			s.addMember("field "+name, f)
		}
	case *ast.InterfaceType:
		s.add("%s interface", head)
		for _, m := range t.Methods.List {
			s.addMember("interface "+name, m)
		}
	default:
		if spec.Assign.IsValid() {
			head += " ="
		}
		s.add("%s %s", head, text(t))
	}
}

// addMember adds the fields of one line, a method of an interface, or an embedded type.
func (s *surface) addMember(prefix string, f *ast.Field) {
	if len(f.Names) == 0 {
		if ast.IsExported(baseName(f.Type)) {
			s.add("%s embeds %s", prefix, text(f.Type))
		}
		return
	}
	for _, n := range f.Names {
		if !n.IsExported() {
			continue
		}
		if method, ok := f.Type.(*ast.FuncType); ok && strings.HasPrefix(prefix, "interface") {
			s.add("%s.%s%s", prefix, n.Name, signature(method))
			continue
		}
		s.add("%s.%s %s", prefix, n.Name, text(f.Type))
	}
}

func (s *surface) add(format string, args ...any) {
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

// signature returns the types of parameters and results. Their names are not part of the API.
func signature(t *ast.FuncType) string {
	results := types(t.Results)
	switch len(results) {
	case 0:
		return "(" + strings.Join(types(t.Params), ", ") + ")"
	case 1:
		return "(" + strings.Join(types(t.Params), ", ") + ") " + results[0]
	}
	return "(" + strings.Join(types(t.Params), ", ") + ") (" + strings.Join(results, ", ") + ")"
}

func types(fields *ast.FieldList) []string {
	if fields == nil {
		return nil
	}
	var all []string
	for _, f := range fields.List {
		for range max(len(f.Names), 1) {
			all = append(all, text(f.Type))
		}
	}
	return all
}

func typeParams(fields *ast.FieldList) string {
	if fields == nil {
		return ""
	}
	var all []string
	for _, f := range fields.List {
		for _, n := range f.Names {
			all = append(all, n.Name+" "+text(f.Type))
		}
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// baseName returns the name of a type without pointer, package and arguments, or "".
func baseName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return baseName(e.X)
	case *ast.IndexExpr:
		return baseName(e.X)
	case *ast.IndexListExpr:
		return baseName(e.X)
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// text formats e in one line. Function types keep the names of parameters.
func text(e ast.Expr) string {
	if e == nil {
		return ""
	}
	var b bytes.Buffer
	if err := printer.Fprint(&b, token.NewFileSet(), e); err != nil {
		return err.Error()
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// goldenPath returns the path of the api.txt of the package in dir.
func goldenPath(dir string) string { return path.Join(dir, "api.txt") }
