// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/metehq/mete/cmd/internal/cli"
)

var update = flag.Bool("update", false, "rewrite doc/cli.md and doc/config.md from the help texts")

const docs = "../../../doc"

// run runs mete with args and returns what it printed.
func run(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = cli.Main(context.Background(), args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
	return out.String(), errs.String(), code
}

func helpOf(t *testing.T, topic ...string) string {
	t.Helper()
	stdout, stderr, code := run(t, append([]string{"help"}, topic...)...)
	if code != 0 || stderr != "" {
		t.Fatalf("mete help %v: code %d, stderr %q", topic, code, stderr)
	}
	return stdout
}

// commandNames are those that the overview lists.
func commandNames(t *testing.T) []string {
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^  ([a-z]+) `).FindAllStringSubmatch(helpOf(t), -1) {
		names = append(names, m[1])
	}
	if len(names) < 6 {
		t.Fatalf("the overview lists only %q", names)
	}
	return names
}

func TestDocs_AreTheHelpTexts(t *testing.T) {
	var b strings.Builder
	b.WriteString("# The command\n\nThis is what `mete help` says. Exit codes are the same for every command: 0 is yes\n" +
		"or fine, 1 no or invalid, 2 wrong usage or cannot say, 3 the server or its store\n" +
		"does not answer.\n")
	fmt.Fprintf(&b, "\n```text\n%s```\n", helpOf(t))
	for _, name := range commandNames(t) {
		fmt.Fprintf(&b, "\n## mete %s\n\n```text\n%s```\n", name, helpOf(t, name))
	}
	compare(t, "cli.md", b.String())
}

func TestDocs_AreTheSampleConfiguration(t *testing.T) {
	compare(t, "config.md", "# The configuration file\n\n`mete serve --config mete.yaml` reads the settings below; `mete help config`\n"+
		"prints them. Whatever a file leaves out has the value shown, and flags override\nit. All mistakes in a file are reported at once, with their lines.\n\n"+
		"```yaml\n"+helpOf(t, "config")+"```\n")
}

func compare(t *testing.T, name, want string) {
	t.Helper()
	path := filepath.Join(docs, name)
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("doc/%s is not what the help says: run go test ./internal/cli -update in cmd", name)
	}
}
