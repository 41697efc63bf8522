// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/metehq/mete/cmd/internal/policysign"
	"github.com/metehq/mete/cmd/internal/scaffold"
	"github.com/metehq/mete/policy"
)

type checkCommand struct {
	std    Streams
	paint  painter
	format string
	strict bool // warnings fail the check
	list   bool // print passed tests, too
	tests  testOptions
	keys   policysign.Keys
}

const checkAbout = `
Reads policies and reports every error with its place and a remedy. A
policy is a file in JSON or YAML, a directory of such files, or
postgres://HOST/DATABASE for the rules there. For a correct policy the command
describes each limit in words, prints warnings, and runs the tests in the
policy. doc/lint.md explains the codes in brackets. 'mete serve' starts with the
same code. Without arguments it reads policy.yaml in the current directory.

Exit codes:
  0  all policies are valid
  1  an error, a failed test or, with --strict, a warning
  2  wrong usage, or a file cannot be read
  3  a database does not answer

The tests give the same results every time. Some rules apply to a share of keys
("25%"), and keys contain hashes of secrets. If METE_HASH_KEY is the hash_key of
the servers, the tests select the same keys as the servers. Otherwise the
command uses a fixed key and prints a note.

--format sarif is for code hosts, which show findings beside the lines. For an
editor that knows JSON Schema, keep the output of 'mete check --schema' in a
file, and begin the policy with

  # yaml-language-server: $schema=policy.schema.json
`

func newCheckCommand(std Streams) *cobra.Command {
	c := &checkCommand{std: std, paint: newPainter(std.Out)}
	var policies, keyFiles []string
	var run string
	var schema bool
	cmd := &cobra.Command{
		Use: "check [flags] [POLICY ...]", Short: "Report all errors in a policy, and run its tests", Long: checkAbout, SuggestFor: []string{"lint", "validate", "test"},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			files := append(policies, args...)
			switch {
			case schema && len(files) > 0:
				return usageError("--schema takes no files: it prints the JSON Schema for editors")
			case schema:
				_, err := std.Out.Write(policy.JSONSchema())
				return err
			case len(files) == 0 && isFile(scaffold.PolicyFile):
				files = []string{scaffold.PolicyFile}
			case len(files) == 0:
				return usageError("no policy given, and no policy.yaml in the current directory: name a file, a directory, - for standard input, or a database such as postgres://HOST/DATABASE")
			}
			if run != "" {
				if c.tests.Run, err = regexp.Compile(run); err != nil {
					return usageError("--run: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
				}
			}
			if c.keys, err = policysign.ReadKeys(keyFiles...); err != nil {
				return fail(exitUsage, err)
			}
			if files, err = expandDirectories(files); err != nil {
				return fail(exitUsage, err)
			}
			return c.files(cmd.Context(), files)
		},
	}
	addFormat(cmd, &c.format, "text", "json", "sarif")
	cmd.Flags().StringArrayVar(&policies, "policy", nil, "check the policy `FILE`, like an argument; may be repeated")
	cmd.Flags().BoolVar(&c.strict, "strict", false, "exit with 1 also for warnings")
	cmd.Flags().StringVar(&run, "run", "", "run only the tests in the policy whose names match `REGEXP`")
	cmd.Flags().BoolVar(&c.list, "list-tests", false, "list all tests, not only failed ones")
	cmd.Flags().BoolVar(&schema, "schema", false, "print the JSON Schema of policy files, for editors")
	addPolicyKeys(cmd, &keyFiles)
	completePolicy(cmd)
	return cmd
}

// files checks and reports each file, and returns the worst exit code.
func (c *checkCommand) files(ctx context.Context, files []string) error {
	worst, ran, skipped := exitOK, 0, 0
	var all []checkedPolicy
	for i, file := range files {
		p := c.read(ctx, file)
		worst = max(worst, p.exitCode(c.strict))
		ran, skipped = ran+len(p.tests.Outcomes), skipped+p.tests.Skipped
		switch c.format {
		case "json":
			p.writeJSON(c.std.Out)
		case "sarif":
			all = append(all, p)
		default:
			if i > 0 {
				fmt.Fprintln(c.std.Out)
			}
			c.writeText(&p)
		}
	}
	if c.format == "sarif" {
		writeSARIF(c.std.Out, all)
	}
	if ran == 0 && skipped > 0 { // a misspelled name must not count as success
		return fail(max(worst, exitNo), errors.New("--run: no test has a matching name"))
	}
	return exitWith(worst)
}
