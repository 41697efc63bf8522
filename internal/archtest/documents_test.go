// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// Documents must be true: links have a target, code blocks are in a tested example, named tests exist, and
// the README stays short.

const maxReadmeLines = 200

var (
	linkPattern     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	testNamePattern = regexp.MustCompile("`((?:Test|Fuzz|Example)[A-Za-z0-9_]*)`")
	testFuncPattern = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)[A-Za-z0-9_]*)\(`)
	headingPattern  = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notInAnchor     = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// A library has the documents of the repository and the files that they refer to.
type library struct {
	fsys     fs.FS
	docs     map[string]string // Markdown, by path
	examples []string          // the text of every file in examples, unindented
	tests    []string          // names of test functions
}

func readLibrary(fsys fs.FS) (*library, error) {
	l := &library{fsys: fsys, docs: map[string]string{}}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if isIgnored(d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		inExamples := strings.HasPrefix(name, "examples/")
		isDoc, isTest := strings.HasSuffix(name, ".md"), strings.HasSuffix(name, "_test.go")
		if !inExamples && !isDoc && !isTest {
			return nil
		}
		text, err := fs.ReadFile(fsys, name)
		if isDoc {
			l.docs[name] = string(text)
		} else if inExamples {
			l.examples = append(l.examples, unindent(string(text)))
		}
		if isTest {
			for _, m := range testFuncPattern.FindAllStringSubmatch(string(text), -1) {
				l.tests = append(l.tests, m[1])
			}
		}
		return err
	})
	return l, err
}

// check returns the findings in no particular order.
func (l *library) check() []finding {
	var found []finding
	for name, text := range l.docs {
		for _, m := range linkPattern.FindAllStringSubmatch(text, -1) {
			if !l.leadsSomewhere(name, m[1]) {
				found = append(found, finding{name, fmt.Sprintf("the link %s has no target", m[1])})
			}
		}
		for _, m := range testNamePattern.FindAllStringSubmatch(text, -1) {
			if !slices.Contains(l.tests, m[1]) {
				found = append(found, finding{name, fmt.Sprintf("there is no test %s", m[1])})
			}
		}
	}
	readme := l.docs["README.md"]
	if n := strings.Count(readme, "\n"); n > maxReadmeLines {
		found = append(found, finding{"README.md", fmt.Sprintf("has %d lines, want at most %d", n, maxReadmeLines)})
	}
	for _, block := range append(blocks(readme, "go"), blocks(readme, "yaml")...) {
		if !slices.ContainsFunc(l.examples, func(text string) bool { return strings.Contains(text, unindent(block)) }) {
			found = append(found, finding{"README.md", fmt.Sprintf("no file in examples has this code:\n%s", block)})
		}
	}
	return found
}

// leadsSomewhere checks a link within the repository. It accepts all others, because a test needs no network.
func (l *library) leadsSomewhere(from, link string) bool {
	if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
		return true
	}
	target, anchor, _ := strings.Cut(link, "#")
	name := from
	if target != "" {
		name = path.Join(path.Dir(from), target)
	}
	if _, err := fs.Stat(l.fsys, name); err != nil {
		return false
	}
	return anchor == "" || slices.ContainsFunc(headingPattern.FindAllStringSubmatch(l.docs[name], -1), func(m []string) bool {
		return anchorOf(m[1]) == anchor
	})
}

// anchorOf returns the anchor that GitHub gives a heading.
func anchorOf(heading string) string {
	return strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}

// blocks returns the fenced blocks of a language.
func blocks(text, language string) []string {
	var all []string
	for _, rest := range strings.Split(text, "\n```"+language+"\n")[1:] {
		block, _, _ := strings.Cut(rest, "\n```")
		all = append(all, block)
	}
	return all
}

// unindent removes the indentation of all lines, to compare quotations.
func unindent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimLeft(line, " \t"))
	}
	return b.String()
}

func TestDocuments(t *testing.T) {
	l, err := readLibrary(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	if l.docs["README.md"] == "" {
		t.Fatal("no README.md in ../..")
	}
	for _, f := range l.check() {
		t.Errorf("%s: %s", f.place, f.what)
	}
}

func TestDocuments_Broken(t *testing.T) {
	for _, tt := range []struct {
		readme string
		want   string // part of the finding; empty for none
	}{
		{"[a](doc/a.md#at-the-end-1) [b](#top) [c](https://example.org/x) [d](examples)\n# Top", ""},
		{"[a](doc/b.md)", "doc/b.md has no target"},
		{"[a](doc/a.md#end)", "doc/a.md#end has no target"},
		{"proved by `TestA`, `FuzzA`", ""},
		{"proved by `TestB`", "no test TestB"},
		{"\n```go\nx := 1\ny := 2\n```\n", ""},
		{"\n```go\nx := 2\n```\n", "x := 2"},
		{strings.Repeat("\n", 200), ""},
		{strings.Repeat("\n", 201), "201 lines"},
	} {
		l, err := readLibrary(fstest.MapFS{
			"README.md":          {Data: []byte(tt.readme)},
			"doc/a.md":           {Data: []byte("# A\n\n## At the end, 1\n\n[back](../README.md)\n")},
			"a_test.go":          {Data: []byte("func TestA(t *testing.T) {}\nfunc FuzzA(f *testing.F) {}\n")},
			"examples/a/main.go": {Data: []byte("func main() {\n\tx := 1\n\ty := 2\n}\n")},
		})
		if err != nil {
			t.Fatal(err)
		}
		var got string
		for _, f := range l.check() {
			got += f.place + ": " + f.what + "\n"
		}
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("readme %q: found %q, want %q", tt.readme, got, tt.want)
		}
	}
}
