// SPDX-License-Identifier: Apache-2.0

package abuse_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/metehq/mete/proof/meted"
)

var (
	testInFile = regexp.MustCompile("\\[[^\\]]*\\]\\(\\.\\./([^)]+_test\\.go)\\): ((?:`[A-Za-z0-9_]+`(?:, )?)+)")
	testName   = regexp.MustCompile("`([A-Za-z0-9_]+)`")
)

// Every row of the attack table names existing tests and their files. The table contains every test of
// this package.
func TestAbuse_EveryAttackHasItsTest(t *testing.T) {
	root := meted.Root(t)
	document := read(t, filepath.Join(root, "doc/security.md"))
	_, table, found := strings.Cut(document, "\n| attack |")
	if !found {
		t.Fatal("doc/security.md has no attack table")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	rows := strings.Split(table, "\n")[2:]
	if len(rows) < 22 {
		t.Errorf("%d rows, want an answer to at least 22 attacks", len(rows))
	}
	for _, row := range rows {
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		if len(cells) != 4 {
			t.Errorf("a row of %d cells, want 4: %s", len(cells), row)
			continue
		}
		tests := testInFile.FindAllStringSubmatch(cells[3], -1)
		if len(tests) == 0 && !strings.Contains(cells[3], "review") {
			t.Errorf("no test, and no word of a review: %s", row)
		}
		for _, file := range tests {
			text := read(t, filepath.Join(root, file[1]))
			for _, name := range testName.FindAllStringSubmatch(file[2], -1) {
				if !strings.Contains(text, "\nfunc "+name[1]+"(") {
					t.Errorf("%s has no %s: %s", file[1], name[1], row)
				}
			}
		}
	}
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		for _, name := range regexp.MustCompile(`(?m)^func (TestAbuse_\w+)`).FindAllStringSubmatch(read(t, file), -1) {
			if !strings.Contains(document, "`"+name[1]+"`") && name[1] != t.Name() {
				t.Errorf("%s is not in doc/security.md", name[1])
			}
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
