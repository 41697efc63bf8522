// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// Every public package lists its exported names in its api.txt, so that reviewers see changes of the API.
// After such a change:
//
//	go test ./internal/archtest -run TestAPI -update
var update = flag.Bool("update", false, "write every api.txt")

// The maximum number of exported identifiers, so that users can read a package in ten minutes. Methods,
// fields and constants of a type in the package do not count.
const (
	maxRootNames = 43
	maxNames     = 20
)

// manyNames starts the line of an api.txt that excuses more names.
var manyNames = fmt.Sprintf("# more than %d: ", maxNames)

// checkAPI compares the api.txt files in fsys with the tree.
func checkAPI(t *tree, fsys fs.FS) []finding {
	var found []finding
	all := surfaces(t)
	for _, dir := range slices.Sorted(maps.Keys(all)) {
		s, place := all[dir], goldenPath(dir)
		comments, golden, err := readGolden(fsys, place)
		if err != nil {
			found = append(found, finding{place, "is missing: run the test with -update"})
			continue
		}
		for _, line := range difference(s.lines, golden) {
			found = append(found, finding{place, "lacks: " + line})
		}
		for _, line := range difference(golden, s.lines) {
			found = append(found, finding{place, "lists a removed or changed name: " + line})
		}
		limit, excused := maxRootNames, false
		if dir != "." {
			limit = maxNames
			excused = slices.ContainsFunc(comments, func(c string) bool {
				return strings.HasPrefix(c, manyNames) && len(c) > len(manyNames)
			})
		}
		if len(s.names) > limit && !excused {
			found = append(found, finding{dir, fmt.Sprintf("exports %d names, want at most %d", len(s.names), limit)})
		}
	}
	return append(found, strayGoldens(all, fsys)...)
}

// strayGoldens finds the files of removed packages.
func strayGoldens(all map[string]*surface, fsys fs.FS) []finding {
	var found []finding
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && isIgnored(d.Name()) {
			return fs.SkipDir
		}
		if path.Base(name) == goldenPath("") && all[path.Dir(name)] == nil {
			found = append(found, finding{name, "belongs to no public package"})
		}
		return err
	})
	if err != nil {
		found = append(found, finding{".", err.Error()})
	}
	return found
}

// readGolden returns the leading comments and the other lines of an api.txt.
func readGolden(fsys fs.FS, name string) (comments, lines []string, err error) {
	text, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, nil, err
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSuffix(line, "\n"); strings.HasPrefix(line, "#") {
			comments = append(comments, line)
		} else {
			lines = append(lines, line)
		}
	}
	return comments, lines, nil
}

// difference returns the lines of a that are not in b.
func difference(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(line string) bool { return slices.Contains(b, line) })
}

// writeGoldens writes every api.txt below root. It keeps the comments.
func writeGoldens(t *tree, root string) error {
	for dir, s := range surfaces(t) {
		place := goldenPath(dir)
		comments, _, err := readGolden(os.DirFS(root), place)
		if err != nil {
			comments = nil
		}
		text := strings.Join(slices.Concat(comments, s.lines), "\n") + "\n"
		if err := os.WriteFile(path.Join(root, place), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func TestAPI(t *testing.T) {
	const root = "../.."
	repository, err := load(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := writeGoldens(repository, root); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range checkAPI(repository, os.DirFS(root)) {
		t.Errorf("%s: %s", f.place, f.what)
	}
}

func TestAPI_Surface(t *testing.T) {
	tests := []struct {
		source string
		want   []string
		names  int
	}{
		{"func F(a, b int, c ...string) (n int, err error) { return }",
			[]string{"func F(int, int, ...string) (int, error)"}, 1},
		{"func F[K comparable, V any](m map[K]V) K { panic(0) }",
			[]string{"func F[K comparable, V any](map[K]V) K"}, 1},
		{"type T struct { A, B int; c int; fs.FS; *inner }\ntype inner struct{ D int }\nfunc (t *T) M() {}\nfunc (inner) N() {}",
			[]string{"field T embeds fs.FS", "field T.A int", "field T.B int", "method (*T) M()", "type T struct"}, 1},
		{"type I interface { M(n int) error; fs.FS; hidden() }",
			[]string{"interface I embeds fs.FS", "interface I.M(int) error", "type I interface"}, 1},
		{"type C uint8\nconst (\n\tX C = iota\n\tY\n\tz\n)\nconst Max time.Duration = 1 << 4",
			[]string{"const Max time.Duration = 1 << 4", "const X C = 0", "const Y C = 1", "type C uint8"}, 2},
		{"type A = map[string]int\nvar E = 1\nvar F, g error\nfunc f() {}",
			[]string{"type A = map[string]int", "var E", "var F error"}, 3},
	}
	for _, tt := range tests {
		got := surfaces(loadFiles(t, map[string]string{"policy/p.go": source("policy", tt.source)}))["policy"]
		if !slices.Equal(got.lines, tt.want) || len(got.names) != tt.names {
			t.Errorf("%s:\ngot  %q, %d names %q\nwant %q, %d names", tt.source, got.lines, len(got.names), got.names, tt.want, tt.names)
		}
	}
}

func TestAPI_Broken(t *testing.T) {
	var many strings.Builder
	for i := range maxNames + 1 {
		fmt.Fprintf(&many, "func F%02d() {}\n", i)
	}
	for _, tt := range []struct {
		name string
		file map[string]string // changes the sound tree
		api  map[string]string // by path, added to the valid files
		want string            // part of the finding; empty for none
	}{
		{"nothing", nil, nil, ""},
		{"a new package", map[string]string{"adaptive/a.go": source("adaptive", "")}, nil, "adaptive/api.txt: is missing"},
		{"packages nobody imports", map[string]string{"internal/n/n.go": source("n", ""), "bench/b/b.go": source("b", "")}, nil, ""},
		{"a new name", map[string]string{"policy/p.go": source("policy", "func F() {}")}, nil, "policy/api.txt: lacks: func F()"},
		{"a name that is gone", nil, map[string]string{"policy/api.txt": "func F()\n"}, "policy/api.txt: lists a removed or changed name: func F()"},
		{"a package that is gone", nil, map[string]string{"old/api.txt": ""}, "old/api.txt: belongs to no public package"},
		{"too many", map[string]string{"policy/p.go": source("policy", many.String())}, nil, "policy: exports 21 names, want at most 20"},
	} {
		repository := loadFiles(t, tt.file)
		fsys := fstest.MapFS{}
		for dir := range surfaces(loadFiles(t, nil)) {
			fsys[goldenPath(dir)] = &fstest.MapFile{}
		}
		for name, text := range tt.api {
			fsys[name] = &fstest.MapFile{Data: []byte(text)}
		}
		var got strings.Builder
		for _, f := range checkAPI(repository, fsys) {
			fmt.Fprintf(&got, "%s: %s\n", f.place, f.what)
		}
		if (got.Len() == 0) != (tt.want == "") || !strings.Contains(got.String(), tt.want) {
			t.Errorf("%s: found\n%swant %q", tt.name, &got, tt.want)
		}
	}
}

func TestAPI_ReasonForManyNames(t *testing.T) {
	var many strings.Builder
	for i := range maxNames + 1 {
		fmt.Fprintf(&many, "func F%02d()\n", i)
	}
	body := strings.ReplaceAll(many.String(), ")\n", ") {}\n")
	repository := loadFiles(t, map[string]string{"policy/p.go": source("policy", body)})
	for comment, want := range map[string]int{
		"":                             1,
		manyNames + "\n":               1,
		manyNames + "it is a table.\n": 0,
	} {
		fsys := fstest.MapFS{}
		for dir := range surfaces(repository) {
			fsys[goldenPath(dir)] = &fstest.MapFile{}
		}
		fsys["policy/api.txt"] = &fstest.MapFile{Data: []byte(comment + many.String())}
		if found := checkAPI(repository, fsys); len(found) != want {
			t.Errorf("api.txt that begins %q: found %v, want %d findings", comment, found, want)
		}
	}
}
