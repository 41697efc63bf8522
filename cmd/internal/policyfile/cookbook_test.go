// SPDX-License-Identifier: Apache-2.0

package policyfile_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/cmd/internal/policyfile"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policytest"
)

const (
	cookbookDir = "../../../examples/cookbook"
	cookbook    = "../../../doc/cookbook.md"
)

var update = flag.Bool("update", false, "copy the files of examples/cookbook into doc/cookbook.md")

// written is when the recipes were: their overrides have not expired then.
var written = time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)

func recipes(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(cookbookDir, "*"))
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files in %s, %v, want 20 and more", len(files), cookbookDir, err)
	}
	return files
}

// What a recipe is for is in its tests: they pass, each of its rules denies
// somebody in one of them, and mete check has nothing to say.
func TestCookbook_RecipesWork(t *testing.T) {
	for _, file := range recipes(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			m, err := policyfile.Load(file, policy.Options{HashKey: []byte("cookbook"), Now: written})
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range m.Warnings() {
				t.Errorf("mete check warns: %v", w)
			}
			report, err := policytest.Run(t.Context(), m, m.Tests())
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range report.Results {
				for _, f := range r.Failures {
					t.Errorf("%v\n\t%s", f, strings.Join(f.Why, "\n\t"))
				}
			}
			if len(report.Results) == 0 {
				t.Error("there are no tests in it")
			}
			for _, gap := range report.Gaps() {
				t.Error(gap)
			}
		})
	}
}

// A recipe in the book stands behind a heading, and is the file that its link
// names, without what all files begin with.
var (
	recipeBlock = regexp.MustCompile("(?s)\\[([a-z0-9_]+\\.yaml)\\]\\(\\.\\./examples/cookbook/([a-z0-9_]+\\.yaml)\\)[^\n]*\n\n```yaml\n(.*?)```\n")
	license     = "# SPDX-License-Identifier: Apache-2.0\n#\n"
)

func TestCookbook_ShowsTheRecipes(t *testing.T) {
	data, err := os.ReadFile(cookbook)
	if err != nil {
		t.Fatal(err)
	}
	var shown []string
	text := recipeBlock.ReplaceAllStringFunc(string(data), func(block string) string {
		m := recipeBlock.FindStringSubmatch(block)
		if m[1] != m[2] {
			t.Errorf("the link %s leads to %s", m[1], m[2])
		}
		shown = append(shown, m[2])
		file, err := os.ReadFile(filepath.Join(cookbookDir, m[2]))
		if err != nil {
			t.Error(err)
			return block
		}
		return strings.Replace(block, "```yaml\n"+m[3], "```yaml\n"+strings.TrimPrefix(string(file), license), 1)
	})
	if *update && !t.Failed() {
		if err := os.WriteFile(cookbook, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if text != string(data) {
		t.Error("doc/cookbook.md does not show the files of examples/cookbook: run go test ./internal/policyfile -update in cmd")
	}
	for _, file := range recipes(t) {
		if name := filepath.Base(file); !slices.Contains(shown, name) {
			t.Errorf("doc/cookbook.md lacks %s", name)
		}
	}
}
