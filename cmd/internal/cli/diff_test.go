// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The example of mete diff in doc/replay.md has the output of mete diff.
func TestDocs_DiffExample(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join(docs, replayDoc))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(replayExamples)
	out, errs, code := run(t, "diff", "old.yaml", "new.yaml")
	if code != 1 || errs != "" {
		t.Fatalf("code %d, stderr %q", code, errs)
	}
	want := "    " + strings.ReplaceAll(strings.TrimSuffix(out, "\n"), "\n", "\n    ") + "\n"
	if want = strings.ReplaceAll(want, "\n    \n", "\n\n"); !strings.Contains(string(doc), want) {
		t.Errorf("doc/%s does not have what is printed:\n%s", replayDoc, want)
	}
}
