// SPDX-License-Identifier: Apache-2.0

package regressions_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
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

// parseEdit reads a unified diff. It ignores the text before the first file, and the numbers of lines.
func parseEdit(name, text string) (*edit, error) {
	e := &edit{name: name}
	path, in := "", false
	for i, line := range strings.SplitAfter(text, "\n") {
		switch {
		case strings.HasPrefix(line, "--- a/"):
			in = false
		case strings.HasPrefix(line, "+++ b/"):
			path = strings.TrimSpace(strings.TrimPrefix(line, "+++ b/"))
		case strings.HasPrefix(line, "@@ ") && path != "":
			e.hunks, in = append(e.hunks, hunk{path: path}), true
		case !in || line == "":
		default:
			h := &e.hunks[len(e.hunks)-1]
			switch line[0] {
			case '-':
				h.old += line[1:]
			case '+':
				h.new += line[1:]
			case ' ':
				h.old, h.new = h.old+line[1:], h.new+line[1:]
			case '\n':
				h.old, h.new = h.old+line, h.new+line
			default:
				return nil, fmt.Errorf("%s:%d: line %q begins with none of +, - and space", name, i+1, line)
			}
		}
	}
	if len(e.hunks) == 0 {
		return nil, fmt.Errorf("%s has no hunk", name)
	}
	return e, nil
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
	e, err := parseEdit("e", "The reason.\n\n--- a/a.go\n+++ b/a.go\n@@ -9,2 +9,2 @@\n one\n-two\n+2\n@@ -20 +20 @@\n-four\n")
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
	if _, err := parseEdit("e", "no diff"); err == nil {
		t.Error("a text without a hunk is accepted")
	}
}
