// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// Each guide of doc/adding.md names exactly the source files that its search finds. A newcomer misses no
// file.

const guides = "doc/adding.md"

// notFound begins the list of the files of a guide that its search does not find.
const notFound = "The search does not find"

var (
	guideSearch  = regexp.MustCompile(`(?m)^    git grep -nE ['"](.*?)['"]( -- .*)?$`)
	guideExclude = regexp.MustCompile(`':!([^']+)'`)
	guideOnly    = regexp.MustCompile(` -- ([a-z/]+)$`)
	guidePath    = regexp.MustCompile("`([a-z][\\w.-]*(?:/[\\w.-]+)+|go\\.work|[a-z_]+\\.go)`")
	guideCount   = regexp.MustCompile(`(?m)^\| \[([^\]]+)\]\(#[^)]*\) \| (\d+) \|`)
	lineComment  = regexp.MustCompile(`(^|\s)(//|--|#|\*)(\s.*)?$`)

	// notSource are tests, documents, examples, copies and generated files.
	notSource = regexp.MustCompile(`(_test\.go|\.md|api\.txt|go\.sum|operations\.txt|\.png)$|(^|/)(testdata|testjs|examples|bench|proof|doc|archtest)/`)
)

// checkGuides compares each guide that has a search with the files in fsys.
func checkGuides(fsys fs.FS) ([]finding, error) {
	text, err := fs.ReadFile(fsys, guides)
	if err != nil {
		return nil, err
	}
	sources, err := readSourceLines(fsys)
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for _, m := range guideCount.FindAllStringSubmatch(string(text), -1) {
		counts[m[1]], _ = strconv.Atoi(m[2])
	}
	var found []finding
	report := func(title, format string, args ...any) {
		found = append(found, finding{guides, title + ": " + fmt.Sprintf(format, args...)})
	}
	for _, guide := range strings.Split(string(text), "\n## ")[1:] {
		title, body, _ := strings.Cut(guide, "\n")
		listed, _, _ := strings.Cut(body, notFound)
		var named, matching []string
		for _, m := range guidePath.FindAllStringSubmatch(body, -1) {
			info, err := fs.Stat(fsys, m[1])
			if err != nil && path.Ext(m[1]) != "" {
				report(title, "there is no file %s", m[1])
			}
			if err != nil || info.IsDir() || slices.Contains(named, m[1]) || notSource.MatchString(m[1]) {
				continue
			}
			named = append(named, m[1])
			if strings.Contains(listed, "`"+m[1]+"`") {
				matching = append(matching, m[1])
			}
		}
		m := guideSearch.FindStringSubmatch(body)
		if m == nil {
			continue
		}
		pattern, err := regexp.Compile(m[1])
		if err != nil {
			return nil, err
		}
		matches := searchSources(sources, pattern, m[2])
		for _, name := range difference(matches, named) {
			report(title, "does not name %s, which matches %s", name, pattern)
		}
		for _, name := range difference(matching, matches) {
			report(title, "names %s, which does not match %s", name, pattern)
		}
		if n := len(named); n != counts[title] {
			report(title, "names %d source files, the table has %d", n, counts[title])
		}
	}
	return found, nil
}

// readSourceLines returns the lines of the source files in fsys, by path, without comments.
func readSourceLines(fsys fs.FS) (map[string][]string, error) {
	sources := map[string][]string{}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && isIgnored(d.Name()):
			return fs.SkipDir
		case d.IsDir() || notSource.MatchString(name):
			return nil
		}
		text, err := fs.ReadFile(fsys, name)
		for line := range strings.Lines(string(text)) {
			sources[name] = append(sources[name], lineComment.ReplaceAllString(strings.TrimRight(line, "\n"), ""))
		}
		return err
	})
	return sources, err
}

// searchSources returns the sorted paths of the files with a match. The pathspec of git
// excludes directories, or names the only one.
func searchSources(sources map[string][]string, pattern *regexp.Regexp, pathspec string) []string {
	var all []string
	excluded := guideExclude.FindAllStringSubmatch(pathspec, -1)
	only := guideOnly.FindStringSubmatch(pathspec)
	for name, lines := range sources {
		isExcluded := slices.ContainsFunc(excluded, func(m []string) bool { return strings.HasPrefix(name, m[1]+"/") }) ||
			only != nil && !strings.HasPrefix(name, only[1]+"/")
		if !isExcluded && slices.ContainsFunc(lines, pattern.MatchString) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

func TestAdding(t *testing.T) {
	found, err := checkGuides(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		t.Errorf("%s: %s", f.place, f.what)
	}
}

func TestAdding_FalseGuide(t *testing.T) {
	const table = "# How to add\n\n| [A thing](#a-thing) | 1 |\n\n## A thing\n\n    git grep -nE 'fooBar' -- ':!b'\n\n"
	for _, tt := range []struct{ guide, want string }{
		{table + "1. `a/x.go` and its test `a/x_test.go`\n", ""},
		{table + "1. `a/x.go` and `a/gone.go`\n", "A thing: there is no file a/gone.go"},
		{table + "1. `a/y.go`\n", "A thing: does not name a/x.go, which matches fooBar\nA thing: names a/y.go, which does not match fooBar"},
		{table + "1. `a/x.go`\n\nThe search does not find `a/y.go`.\n", "A thing: names 2 source files, the table has 1"},
	} {
		found, err := checkGuides(fstest.MapFS{
			guides:        {Data: []byte(tt.guide)},
			"a/x.go":      {Data: []byte("package a\n\nvar fooBar = 1\n")},
			"a/y.go":      {Data: []byte("package a\n\n// fooBar is elsewhere.\n")},
			"a/x_test.go": {Data: []byte("package a\n\nvar _ = fooBar\n")},
			"b/z.go":      {Data: []byte("package b\n\nvar fooBar = 1\n")},
		})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range found {
			got = append(got, f.what)
		}
		if joined := strings.Join(got, "\n"); joined != tt.want {
			t.Errorf("guide %q:\ngot %q, want %q", tt.guide, joined, tt.want)
		}
	}
}
