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
	"github.com/metehq/mete/policy"
)

// A checkCommand is what the flags of check say.
type checkCommand struct {
	std    Streams
	paint  painter
	format string
	strict bool // warnings count like mistakes
	list   bool // tests that pass, too
	tests  testOptions
	keys   policysign.Keys
}

const checkAbout = `
Reads policy files, JSON or YAML, directories of them, or the rules in
postgres://HOST/DATABASE, and reports every mistake with its place and what to
write instead. Where there is none it says in words what each limit allows,
warns of what is probably not meant, and runs the tests in the policy. Of the
words in brackets doc/lint.md says more. It is the same code that 'mete serve'
starts with.

The exit code is 0 if all is well, 1 if there is a mistake, if a test failed or,
with --strict, if there is a warning, 2 if a file cannot be read, and 3 if a
database does not answer.

Tests come out the same every time. Shares of keys ("25%") that hold hashes of
secrets are those of the servers where METE_HASH_KEY is their hash_key; without
it mete check hashes by a key of its own, and notes that.

--format sarif is for code hosts, which show findings beside the lines. For an
editor that knows JSON Schema, keep what 'mete check --schema' prints in a file,
and begin the policy with

  # yaml-language-server: $schema=policy.schema.json
`

// newCheckCommand returns "mete check".
func newCheckCommand(std Streams) *cobra.Command {
	c := &checkCommand{std: std, paint: painterOf(std.Out)}
	var policies, keyFiles []string
	var run string
	var schema bool
	cmd := &cobra.Command{
		Use: "check [flags] POLICY ...", Short: "Report all mistakes in a policy, and run its tests", Long: checkAbout, SuggestFor: []string{"lint", "validate", "test"},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			files := append(policies, args...)
			switch {
			case schema && len(files) > 0:
				return usageError("--schema takes no files: it prints the schema that editors check them by")
			case schema:
				_, err := std.Out.Write(policy.JSONSchema())
				return err
			case len(files) == 0:
				return usageError("no policy given: a file, a directory, - for standard input, or a database such as postgres://HOST/DATABASE")
			}
			if run != "" {
				if c.tests.Run, err = regexp.Compile(run); err != nil {
					return usageError("--run: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
				}
			}
			if c.keys, err = policysign.ReadKeys(keyFiles...); err != nil {
				return fail(exitUsage, err)
			}
			if files, err = policiesIn(files); err != nil {
				return fail(exitUsage, err)
			}
			return c.files(cmd.Context(), files)
		},
	}
	addFormat(cmd, &c.format, "text", "json", "sarif")
	cmd.Flags().StringArrayVar(&policies, "policy", nil, "check the policy `FILE`, like an argument; may be repeated")
	cmd.Flags().BoolVar(&c.strict, "strict", false, "exit with 1 if there are warnings, too")
	cmd.Flags().StringVar(&run, "run", "", "run only the tests in the policy whose names match `REGEXP`")
	cmd.Flags().BoolVar(&c.list, "list-tests", false, "list all tests, not only those that fail")
	cmd.Flags().BoolVar(&schema, "schema", false, "print the JSON Schema of policy files, for editors")
	addPolicyKeys(cmd, &keyFiles)
	completePolicy(cmd)
	return cmd
}

// files checks and reports each of files. The exit code is the worst one.
func (c *checkCommand) files(ctx context.Context, files []string) error {
	worst, ran, skipped := exitOK, 0, 0
	var all []checkedPolicy
	for i, file := range files {
		p := c.read(ctx, file)
		worst = max(worst, p.exit(c.strict))
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
	if ran == 0 && skipped > 0 { // else a misspelt name is a test that passes
		return fail(max(worst, exitNo), errors.New("--run: no test has a name like that"))
	}
	return exit(worst)
}
