// SPDX-License-Identifier: Apache-2.0

package regressions_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// An edit takes a fix out of files of the repository.
type edit struct {
	name  string
	hunks []hunk
}

// A hunk replaces lines of a file.
type hunk struct {
	path     string // from the root of the repository
	old, new string
}

// hunkHeader matches the line before a hunk. The numbers of lines are 1 if they are absent.
var hunkHeader = regexp.MustCompile(`^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@`)

// parseEdit reads a unified diff. It ignores the text before the first file, and the places of hunks. It checks the numbers
// of their lines, because git apply rejects a diff with wrong ones.
func parseEdit(name, text string) (*edit, error) {
	e := &edit{name: name}
	path, old, added := "", 0, 0 // lines that the hunk still has
	for i, line := range strings.SplitAfter(text, "\n") {
		if old == 0 && added == 0 {
			switch header := hunkHeader.FindStringSubmatch(line); {
			case strings.HasPrefix(line, "--- a/"), strings.TrimSpace(line) == "":
			case strings.HasPrefix(line, "+++ b/"):
				path = strings.TrimSpace(strings.TrimPrefix(line, "+++ b/"))
			case path == "": // text before the first file
			case header == nil:
				return nil, fmt.Errorf("%s:%d: line %q is outside a hunk: the header counts too few lines", name, i+1, line)
			default:
				e.hunks = append(e.hunks, hunk{path: path})
				old, added = countLines(header[1]), countLines(header[2])
			}
			continue
		}
		h := &e.hunks[len(e.hunks)-1]
		switch {
		case strings.HasPrefix(line, "-"):
			h.old += line[1:]
			old--
		case strings.HasPrefix(line, "+"):
			h.new += line[1:]
			added--
		case strings.HasPrefix(line, " "), line == "\n":
			line = strings.TrimPrefix(line, " ")
			h.old, h.new = h.old+line, h.new+line
			old, added = old-1, added-1
		default:
			return nil, fmt.Errorf("%s:%d: line %q in a hunk begins with none of +, - and space: the header counts too many lines", name, i+1, line)
		}
		if old < 0 || added < 0 {
			return nil, fmt.Errorf("%s:%d: the header of the hunk counts too few old or new lines", name, i+1)
		}
	}
	switch {
	case old > 0 || added > 0:
		return nil, fmt.Errorf("%s: the header of the last hunk counts too many lines", name)
	case len(e.hunks) == 0:
		return nil, fmt.Errorf("%s has no hunk", name)
	}
	return e, nil
}

// countLines parses the number of lines in the header of a hunk.
func countLines(s string) int {
	if s == "" {
		return 1
	}
	n, _ := strconv.Atoi(s) // digits
	return n
}

// apply writes edited copies of the files below root to dir, and returns them by their paths.
func (e *edit) apply(root, dir string) (map[string]string, error) {
	copies := map[string]string{}
	for i, h := range e.hunks {
		path := filepath.Join(root, filepath.FromSlash(h.path))
		from := path
		if copies[path] != "" {
			from = copies[path]
		}
		text, err := os.ReadFile(from)
		if err != nil {
			return nil, fmt.Errorf("%s: the file of hunk %d is no longer in the source: %w", e.name, i+1, err)
		}
		if n := strings.Count(string(text), h.old); n != 1 || h.old == "" {
			return nil, fmt.Errorf("%s: the old text of hunk %d is %d times in %s, want once: rewrite the edit for the new code\n%s", e.name, i+1, n, h.path, h.old)
		}
		if copies[path] == "" {
			copies[path] = filepath.Join(dir, fmt.Sprintf("%d-%s", i, filepath.Base(path)))
		}
		if err := os.WriteFile(copies[path], []byte(strings.Replace(string(text), h.old, h.new, 1)), 0o600); err != nil {
			return nil, err
		}
	}
	return copies, nil
}

// writeOverlay writes a file for go test -overlay that replaces files by their copies.
func writeOverlay(t *testing.T, dir string, copies map[string]string) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{"Replace": copies})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func readEdit(t *testing.T, name string) *edit {
	t.Helper()
	path := filepath.Join("testdata", name+".diff")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	e, err := parseEdit(path, string(text))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestEdit(t *testing.T) {
	root := t.TempDir()
	write := func(text string) {
		if err := os.WriteFile(filepath.Join(root, "a.go"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e, err := parseEdit("e", "The reason.\n\n--- a/a.go\n+++ b/a.go\n@@ -9,2 +9,2 @@\n one\n-two\n+2\n@@ -20 +20,0 @@\n-four\n")
	if err != nil {
		t.Fatal(err)
	}
	write("zero\none\ntwo\nthree\nfour\n")
	copies, err := e.apply(root, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(copies[filepath.Join(root, "a.go")])
	if want := "zero\none\n2\nthree\n"; err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	for _, text := range []string{"one\nthree\n", "one\ntwo\none\ntwo\nfour\n"} {
		write(text)
		if _, err := e.apply(root, t.TempDir()); err == nil || !strings.Contains(err.Error(), "rewrite the edit") {
			t.Errorf("%q: got error %v, want one that tells to rewrite the edit", text, err)
		}
	}
	const header = "--- a/a.go\n+++ b/a.go\n"
	for _, text := range []string{
		"no diff",
		header + "@@ -9,1 +9,1 @@\n-one\n+1\n+2\n",                    // too few new lines
		header + "@@ -9,1 +9,1 @@\n-one\n-two\n+1\n",                  // too few old lines
		header + "@@ -9,2 +9,1 @@\n-one\n+1\n",                        // too many old lines
		header + "@@ -9,1 +9,2 @@\n-one\n+1\n@@ -20 +20 @@\n-a\n+b\n", // too many new lines, before another hunk
	} {
		if e, err := parseEdit("e", text); err == nil {
			t.Errorf("the edit %q is accepted: %+v", text, e.hunks)
		}
	}
}

// git applies each edit to today's files, and the result is the same as in the overlay.
func TestEdit_GitApplies(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		t.Run(f.name, func(t *testing.T) {
			e, dir := readEdit(t, f.name), t.TempDir()
			for _, h := range e.hunks {
				text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(h.path)))
				if err != nil {
					t.Fatal(err)
				}
				path := filepath.Join(dir, filepath.FromSlash(h.path))
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, text, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			diff, err := filepath.Abs(filepath.Join("testdata", f.name+".diff"))
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("git", "apply", "--unidiff-zero", diff)
			cmd.Dir = dir
			cmd.Env = append(cmd.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir)) // a repository around it would ignore the files
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("git apply: %v\n%s", err, out)
			}
			copies, err := e.apply(root, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			for path, copied := range copies {
				rel, err := filepath.Rel(root, path)
				if err != nil {
					t.Fatal(err)
				}
				want, err := os.ReadFile(copied)
				if err != nil {
					t.Fatal(err)
				}
				got, err := os.ReadFile(filepath.Join(dir, rel))
				if err != nil || string(got) != string(want) {
					t.Errorf("git apply makes another %s than the overlay, %v", rel, err)
				}
			}
		})
	}
}
