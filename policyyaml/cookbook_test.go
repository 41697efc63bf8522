// SPDX-License-Identifier: Apache-2.0

package policyyaml_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const cookbook = "../doc/cookbook.md"

var update = flag.Bool("update", false, "copy examples/cookbook into doc/cookbook.md, and rewrite the errors in testdata/broken")

// A recipe follows the link to its file. The page shows the file up to its tests, without the license.
var (
	recipe  = regexp.MustCompile("(?s)\\[([a-z0-9_]+\\.yaml)\\]\\(\\.\\./examples/cookbook/([a-z0-9_]+\\.yaml)\\)[^\n]*\n\n```yaml\n(.*?)```\n")
	license = "# SPDX-License-Identifier: Apache-2.0\n#\n"
)

func TestCookbook_ShowsTheExamples(t *testing.T) {
	data, err := os.ReadFile(cookbook)
	if err != nil {
		t.Fatal(err)
	}
	var shown []string
	text := recipe.ReplaceAllStringFunc(string(data), func(block string) string {
		m := recipe.FindStringSubmatch(block)
		if m[1] != m[2] {
			t.Errorf("the link %s leads to %s", m[1], m[2])
		}
		shown = append(shown, m[2])
		file, err := os.ReadFile(filepath.Join(cookbookDir, m[2]))
		if err != nil {
			t.Error(err)
			return block
		}
		rules, _, found := strings.Cut(strings.TrimPrefix(string(file), license), "\ntests:\n")
		if !found {
			t.Errorf("%s has no tests", m[2])
		}
		return strings.Replace(block, "```yaml\n"+m[3], "```yaml\n"+rules, 1)
	})
	if *update && !t.Failed() {
		if err := os.WriteFile(cookbook, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if text != string(data) {
		t.Error("doc/cookbook.md does not show the files of examples/cookbook: run go test ./policyyaml -update")
	}
	for _, file := range exampleFiles(t, cookbookDir, 20) {
		if name := filepath.Base(file); !slices.Contains(shown, name) {
			t.Errorf("doc/cookbook.md lacks %s", name)
		}
	}
}
