// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/metehq/mete/tools/internal/git"
)

func TestHelpText(t *testing.T) {
	document := "# Title\n```text\nUsage: mete\n\nRuns the limiter. An example:\n\n  mete take x=y\n\n" +
		"      --a VALUE   the first\n                  line\n      --long-name\n                  the second\n```\n" +
		"```yaml\n# A comment.\nkey: 1\n  # Another.\n```\nOutside.\n"
	want := "\n\n\n\nRuns the limiter. An example:\n\n\n\n" +
		"- the first\n  line\n- \n  the second\n\n" +
		"\nA comment.\n\nAnother.\n\n\n"
	if got := helpText(document); got != want {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

func TestTable_RoundTrip(t *testing.T) {
	hits := []hit{{rule: "A", kind: inTests}, {rule: "A", kind: inTests}, {rule: "B", kind: inHelp}}
	want := count([]string{"A", "B"}, hits)
	got, err := parseTable(want.String(), []string{"A", "B"})
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}

func TestParseTable_Errors(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"A 1 2 3 4 5 6 7\n<<<<<<< ours\n", `line 2: no rule is named "<<<<<<<"`},
		{"B 1 2 3 4", `no rule is named "B"`},
		{"A 1 2 3", "3 numbers, want 7: docs, help, comments, tests, strings, pages, files"},
		{"A 1 2 3 4 5 6 -4", `"-4": want a number of 0 or more`},
	} {
		if _, err := parseTable(tt.text, []string{"A"}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: got error %v, want %q", tt.text, err, tt.want)
		}
	}
}

func TestLowered(t *testing.T) {
	ceilings := table{"A": {1, 2, 3, 4}}
	got := ceilings.lower(table{"A": {4, 3, 2, 1}})
	if want := (table{"A": {1, 2, 2, 1}}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestReport(t *testing.T) {
	old := hit{path: "a.md", line: 1, rule: "A", message: "old"}
	changed := hit{path: "a.md", line: 5, rule: "A", message: "changed"}
	lines := map[string][]span{"a.md": {{4, 6}}}
	for _, tt := range []struct {
		name        string
		hits        []hit
		ceiling     int
		unpublished bool
		ok          bool
		want, not   string
	}{
		{"at the ceiling", []hit{old}, 1, true, true, "", "a.md"},
		{"above", []hit{old, changed}, 1, false, false, "A: 2 hits in docs, the ceiling is 1", "old"},
		{"above, with the place", []hit{old, changed}, 1, false, false, "a.md:5: A: changed", "-lower"},
		{"below", []hit{old}, 2, false, true, "go run ./tools/prose -lower", "rewrite"},
		{"a changed line at the ceiling", []hit{old, changed}, 2, true, false, "a.md:5: A: changed", "old"},
		{"a published line", []hit{old, changed}, 2, false, true, "", "a.md"},
	} {
		var b strings.Builder
		ok := report(&b, tt.hits, count([]string{"A"}, tt.hits), table{"A": {tt.ceiling}},
			changes{base: "BASE", unpublished: tt.unpublished, lines: lines})
		if ok != tt.ok || !strings.Contains(b.String(), tt.want) || strings.Contains(b.String(), tt.not) {
			t.Errorf("%s: got %t and %q, want %t, with %q, without %q", tt.name, ok, b.String(), tt.ok, tt.want, tt.not)
		}
	}
}

// The changes of a clone are the lines that its upstream branch lacks.
func TestChangesSinceUpstream(t *testing.T) {
	dir := t.TempDir()
	origin, clone := filepath.Join(dir, "origin"), filepath.Join(dir, "clone")
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	for _, key := range []string{"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"} {
		t.Setenv(key, "test@example.org")
	}
	mustGit := func(dir string, args ...string) {
		t.Helper()
		if _, err := git.Run(dir, args...); err != nil {
			t.Fatal(err)
		}
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mustGit(dir, "init", "--quiet", "--initial-branch=main", origin)
	write(filepath.Join(origin, "a.md"), "1\n2\n3\n4\n")
	mustGit(origin, "add", ".")
	mustGit(origin, "commit", "--quiet", "--message=first")
	mustGit(dir, "clone", "--quiet", origin, clone)
	t.Chdir(clone)

	c, err := changesSinceUpstream()
	if err != nil || len(c.lines) > 0 || c.unpublished {
		t.Errorf("a fresh clone: got %+v, %v, want no changes", c, err)
	}

	write("a.md", "1\nchanged\n3\n4\nadded\n")
	mustGit(clone, "commit", "--quiet", "--all", "--message=second")
	write("b c.md", "new\n")
	c, err = changesSinceUpstream()
	want := map[string][]span{"a.md": {{2, 2}, {5, 5}}, "b c.md": {{1, 2}}}
	if err != nil || !c.unpublished || !reflect.DeepEqual(c.lines, want) {
		t.Errorf("a commit and a new file: got %+v, %v, want %v", c, err, want)
	}

	mustGit(clone, "remote", "remove", "origin")
	c, err = changesSinceUpstream()
	if err != nil || c.base != "HEAD~1" || c.unpublished || !reflect.DeepEqual(c.lines, want) {
		t.Errorf("without upstream: got %+v, %v, want %v since HEAD~1", c, err, want)
	}
}
