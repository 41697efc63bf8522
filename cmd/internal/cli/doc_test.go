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
	"github.com/metehq/mete/cmd/internal/config"
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

// commandNames returns the commands in the overview.
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

// subcommandNames are the commands that the help of a command lists.
func subcommandNames(t *testing.T, name string) (names []string) {
	_, list, _ := strings.Cut(helpOf(t, name), "\nCommands:\n")
	list, _, _ = strings.Cut(list, "\n\n")
	for _, m := range regexp.MustCompile(`(?m)^  ([a-z]+) `).FindAllStringSubmatch(list, -1) {
		names = append(names, m[1])
	}
	return names
}

func TestDocs_AreTheHelpTexts(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Commands of mete\n\nThis is the output of `mete help`.\n\n")
	for _, name := range commandNames(t) {
		fmt.Fprintf(&b, "- [%s](#mete-%s)\n", name, name)
	}
	b.WriteString("\nCommon flags: [connection](#connection-flags).\n\nExit codes are the same for every command:\n\n" +
		"| Code | Meaning |\n|---|---|\n" +
		"| 0 | yes, allowed, fine |\n" +
		"| 1 | no, denied, invalid |\n" +
		"| 2 | wrong usage, or unreadable input |\n" +
		"| 3 | the server, its store or a database does not answer |\n" +
		"| 4 | the server rejects the request, for example because of its token |\n")
	fmt.Fprintf(&b, "\n```text\n%s```\n", helpOf(t))
	fmt.Fprintf(&b, "\n## Connection flags\n\n```text\n%s```\n", helpOf(t, "connection"))
	for _, name := range commandNames(t) {
		fmt.Fprintf(&b, "\n## mete %s\n\n```text\n%s```\n", name, helpOf(t, name))
		for _, sub := range subcommandNames(t, name) {
			fmt.Fprintf(&b, "\n### mete %s %s\n\n```text\n%s```\n", name, sub, helpOf(t, name, sub))
		}
	}
	compare(t, "cli.md", b.String())
}

func TestDocs_AreTheSampleConfiguration(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Configuration\n\nThis page lists the settings of `mete serve`, their defaults and their environment variables.\n\n" +
		"- [Settings file](#settings-file)\n- [Environment variables](#environment-variables)\n\n## Settings file\n\n" +
		"`mete serve --config mete.yaml` reads these settings; `mete help config` prints them. A setting that\n" +
		"the file leaves out has the value shown. mete reports all errors in a file together, each with its line,\n" +
		"its column and an excerpt. The excerpt shows no secrets. The file is YAML 1.2 in UTF-8.\n\n" +
		"```yaml\n" + helpOf(t, "config") + "```\n\n")
	b.WriteString("## Environment variables\n\nEach setting has an environment variable. A flag overrides a variable, and a variable overrides the\n" +
		"file. Without `--config`, `METE_CONFIG` is the path of the file.\n\n`mete serve --check` lists the variables that it used. The server logs their names when\nit starts, never their values.\n\n" +
		"- mete uses a value unchanged: only the file can contain `${NAME}`.\n" +
		"- A list of words is separated by commas, or in brackets as in the file: `[a, b]`.\n  Lists of mappings are YAML or JSON, parsed as in the file. `[]` is an empty list.\n" +
		"- An empty variable counts as unset. An empty `METE_POLICY_KEYS`, `METE_JWT_KEYS`,\n  `METE_JWT_ISSUER` or `METE_JWT_AUDIENCE` is an error, because it would disable a check.\n" +
		"- A variable replaces the whole setting: `METE_ADMIN_TOKENS` replaces all tokens of the file.\n" +
		"- A relative path is relative to the working directory.\n" +
		"- mete ignores a variable that is not a setting. It warns if the name differs in one or two letters\n  from a setting, or begins with the first word of one, as in `METE_LISTEN_ADDRESS`. It does not warn\n  about the variables that Kubernetes sets for a Service, such as `METE_PORT` and\n  `METE_SERVICE_HOST`, nor about the variables in `${NAME}` of the file.\n\n" +
		"| Setting | Variable | Value |\n|---|---|---|\n")
	for _, v := range config.Variables() {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", v.Key, v.Name, v.Form)
	}
	compare(t, "config.md", b.String())
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
