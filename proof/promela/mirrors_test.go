// SPDX-License-Identifier: Apache-2.0

package promela

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "record the mirrored functions as they are now")

const mirrorsFile = "testdata/mirrors.tsv"

// TestModels_MirrorTheCode compares the mirrored functions with their recorded hashes. If it fails, compare the model with the
// changed function, and change the model if they differ. Then record the function: go test ./promela -run MirrorTheCode -update.
func TestModels_MirrorTheCode(t *testing.T) {
	var rows []string
	for _, m := range all {
		for _, f := range mirrors.FindAllStringSubmatch(read(t, m.file), -1) {
			for name := range strings.SplitSeq(f[2], ", ") {
				rows = append(rows, strings.Join([]string{m.file, f[1], name, hashFunction(t, f[1], name)}, "\t"))
			}
		}
	}
	slices.Sort(rows)
	if *update {
		if err := os.WriteFile(mirrorsFile, []byte(strings.Join(rows, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	known := strings.Split(strings.TrimSpace(read(t, mirrorsFile)), "\n")
	for _, row := range rows {
		if fields := strings.Split(row, "\t"); !slices.Contains(known, row) {
			t.Errorf("%s: %s in %s has changed or is new: compare it with the model, and then run this test with -update", fields[0], fields[2], fields[1])
		}
	}
	if len(known) != len(rows) {
		t.Errorf("%s has %d functions, and the models mirror %d: run this test with -update", mirrorsFile, len(known), len(rows))
	}
}

// hashFunction returns a hash of all functions of a file with this name. It does not depend on comments and white space.
func hashFunction(t *testing.T, file, name string) string {
	t.Helper()
	path := filepath.Join("..", "..", filepath.FromSlash(file))
	var text bytes.Buffer
	if filepath.Ext(file) != ".go" {
		text.WriteString(findBlocks(read(t, path), name))
	} else {
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && strings.EqualFold(fn.Name.Name, name) {
				fn.Doc = nil
				if err := printer.Fprint(&text, fset, fn); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if text.Len() == 0 {
		t.Fatalf("%s has no function %s", file, name)
	}
	return fmt.Sprintf("%.8x", sha256.Sum256([]byte(strings.Join(strings.Fields(text.String()), " "))))
}

var lineComment = regexp.MustCompile(`--.*`)

// findBlocks returns the functions of a script in Lua or SQL. A function in Lua ends at a line with the end of its
// indentation. One in SQL ends at the end of its quotation, or before the next statement that creates something.
func findBlocks(script, name string) string {
	start := regexp.MustCompile(`(?i)(function (\{schema\}\.)?(\{bucket\}_)?` + regexp.QuoteMeta(name) + `\b|^\s*` + regexp.QuoteMeta(name) + ` = function)`)
	var b strings.Builder
	indent, inside := "", false
	for line := range strings.Lines(script) {
		if !inside && start.MatchString(line) {
			indent, inside = line[:len(line)-len(strings.TrimLeft(line, " \t"))], true
			b.WriteString(lineComment.ReplaceAllString(line, ""))
			inside = !strings.HasSuffix(strings.TrimSpace(line), " end")
			continue
		}
		if inside = inside && !strings.HasPrefix(line, "CREATE "); inside {
			b.WriteString(lineComment.ReplaceAllString(line, ""))
			inside = strings.TrimRight(line, "\r\n") != indent+"end" && !strings.HasPrefix(line, "END $$")
		}
	}
	return b.String()
}

func TestFindBlocks(t *testing.T) {
	const lua = "local function one(a)\n\tif a then -- note\n\t\treturn 1\n\tend\nend\n\nlocal function two() return 2 end\nx = 3\n"
	if got, want := findBlocks(lua, "one"), "local function one(a)\n\tif a then \n\t\treturn 1\n\tend\nend\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := findBlocks(lua, "two"), "local function two() return 2 end\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	const sql = "CREATE FUNCTION {schema}.{bucket}_take(a int) AS $$\nBEGIN\n\tRETURN 1;\nEND $$;\nSELECT 1;\nCREATE FUNCTION {schema}.f() RETURNS int\nRETURN 2;\n\nCREATE TABLE t;\n"
	if got := findBlocks(sql, "take"); !strings.HasPrefix(got, "CREATE") || strings.Contains(got, "SELECT") {
		t.Errorf("got %q, want the function only", got)
	}
	if got, want := findBlocks(sql, "f"), "CREATE FUNCTION {schema}.f() RETURNS int\nRETURN 2;\n\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
