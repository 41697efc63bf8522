// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

// instrumentGo returns a Go file with all its mutants. A changed function has one copy for each mutant, and first
// calls the copy of the mutant that runs, if any:
//
//	func half(n int) int { if mutant__ != 0 { switch mutant__ { case 7: return half__7(n) } }; return n / 2 }
//	func half__7(n int) int { return n * 2 }
//
// Copies can hold changes that an expression cannot select at run time, such as the one of a constant. Errors of the
// compiler in a copy name the file mutant7.go. A mutant outside of functions needs its own build: instrumentGo returns it
// in alone.
func instrumentGo(file string, source []byte, jobs []job) (text []byte, alone []job, err error) {
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, nil, err
	}
	offset := func(p token.Pos) int { return fset.Position(p).Offset }
	left := jobs
	var out, copies bytes.Buffer
	end := 0 // of the source in out
	for _, d := range parsed.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil || fn.Recv == nil && fn.Name.Name == "init" {
			continue
		}
		open, close := offset(fn.Body.Lbrace), offset(fn.Body.Rbrace)+1
		isInside := func(j job) bool { return open < j.from && j.to < close }
		if !slices.ContainsFunc(left, isInside) {
			continue
		}
		s := readSignature(fn, source, offset)
		out.Write(source[end:offset(fn.Pos())])
		out.WriteString(s.head("") + "{ if mutant__ != 0 { switch mutant__ { ")
		for _, j := range left {
			if !isInside(j) {
				continue
			}
			fmt.Fprintf(&out, "case %d: %s; ", j.id, s.call(j.id))
			body := slices.Concat(source[open:j.from], []byte(j.text), source[j.to:close])
			fmt.Fprintf(&copies, "\n//line mutant%d.go:1\n%s%s\n", j.id, s.head(fmt.Sprintf("__%d", j.id)), body)
		}
		out.WriteString("} }; ")
		end = open + 1
		left = slices.DeleteFunc(slices.Clone(left), isInside)
	}
	out.Write(source[end:])
	out.Write(copies.Bytes())
	return out.Bytes(), left, nil
}

// A signature is the text of a function before its body. All parameters have names.
type signature struct {
	before, name, after string
	receiver            string
	types, arguments    []string
	returns             bool
}

// head returns the signature with a suffix of the name.
func (s *signature) head(suffix string) string { return s.before + s.name + suffix + s.after }

// call returns the statement that calls the copy for a mutant.
func (s *signature) call(id int) string {
	text := fmt.Sprintf("%s__%d", s.name, id)
	if s.receiver != "" {
		text = s.receiver + "." + text
	}
	if len(s.types) > 0 {
		text += "[" + strings.Join(s.types, ", ") + "]"
	}
	text += "(" + strings.Join(s.arguments, ", ") + ")"
	if s.returns {
		return "return " + text
	}
	return text + "; return"
}

func readSignature(fn *ast.FuncDecl, source []byte, offset func(token.Pos) int) *signature {
	s := &signature{name: fn.Name.Name, returns: fn.Type.Results.NumFields() > 0}
	var edits []edit
	// nameFields gives a name to each field without one, and returns all names.
	nameFields := func(list *ast.FieldList, prefix string) (names []string) {
		for _, field := range list.List {
			if len(field.Names) == 0 {
				name := fmt.Sprintf("%s%d", prefix, len(names))
				at := offset(field.Type.Pos())
				edits, names = append(edits, edit{at, at, name + " "}), append(names, name)
			}
			for _, n := range field.Names {
				name := n.Name
				if name == "_" {
					name = fmt.Sprintf("%s%d", prefix, len(names))
					edits = append(edits, edit{offset(n.Pos()), offset(n.End()), name})
				}
				names = append(names, name)
			}
		}
		return names
	}
	if fn.Recv != nil {
		s.receiver = nameFields(fn.Recv, "receiver__")[0]
	}
	s.arguments = nameFields(fn.Type.Params, "argument__")
	if n := len(fn.Type.Params.List); n > 0 {
		if _, ok := fn.Type.Params.List[n-1].Type.(*ast.Ellipsis); ok {
			s.arguments[len(s.arguments)-1] += "..."
		}
	}
	if fn.Type.TypeParams != nil {
		s.types = nameFields(fn.Type.TypeParams, "Type__")
	}
	start, name, end := offset(fn.Type.Func), offset(fn.Name.Pos()), offset(fn.Body.Lbrace)
	s.before = applyEdits(source, start, name, edits)
	s.after = applyEdits(source, name+len(fn.Name.Name), end, edits)
	return s
}

// An edit replaces a range of the source.
type edit struct {
	from, to int
	text     string
}

// applyEdits returns a range of the source with the edits inside it.
func applyEdits(source []byte, from, to int, edits []edit) string {
	slices.SortFunc(edits, func(a, b edit) int { return a.from - b.from })
	var b strings.Builder
	for _, e := range edits {
		if from <= e.from && e.to <= to {
			b.Write(source[from:e.from])
			b.WriteString(e.text)
			from = e.to
		}
	}
	b.Write(source[from:to])
	return b.String()
}

var (
	embeddedText  = regexp.MustCompile(`//go:embed (\S+)\n\s*(var )?(\w+) string\n`)
	embeddedFiles = regexp.MustCompile(`//go:embed \S+\nvar (\w+) embed\.FS\n`)
)

// instrumentEmbeds returns a Go file that reads its embedded scripts when it runs, and counts them.
func instrumentEmbeds(source []byte) (text []byte, n int) {
	n = len(embeddedText.FindAll(source, -1)) + len(embeddedFiles.FindAll(source, -1))
	text = embeddedText.ReplaceAll(source, []byte("${2}${3} = readScript__(\"$1\")\n"))
	if embeddedFiles.Match(text) {
		text = embeddedFiles.ReplaceAll(text, []byte("var $1 scripts__\n"))
		text = append(text, "\nvar _ embed.FS\n"...)
	}
	return text, n
}

// These environment variables select the mutant of an instrumented program. A mutant of Go code has a number. A mutant of
// a script has the paths of the original and of the changed script.
const (
	mutantVar   = "METE_MUTANT"
	originalVar = "METE_MUTANT_ORIGINAL"
	changedVar  = "METE_MUTANT_CHANGED"
)

// supportFile returns the source of a file for an instrumented package in dir.
func supportFile(name, dir string) []byte {
	return fmt.Appendf(nil, `package %s

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

var mutant__ = func() int { n, _ := strconv.Atoi(os.Getenv(%q)); return n }()

type scripts__ struct{}

func (scripts__) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(filepath.Join(%q, name)) }

func (scripts__) ReadFile(name string) ([]byte, error) {
	path := filepath.Join(%[3]q, name)
	if path == os.Getenv(%q) {
		path = os.Getenv(%q)
	}
	return os.ReadFile(path)
}

func readScript__(name string) string {
	text, err := scripts__{}.ReadFile(name)
	if err != nil {
		panic(err)
	}
	return string(text)
}
`, name, mutantVar, dir, originalVar, changedVar)
}
