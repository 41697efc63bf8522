// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/metehq/mete/cmd/internal/policysign"
	"github.com/metehq/mete/policy"
)

// A checkCommand is what the flags of check say.
type checkCommand struct {
	std    Streams
	format string
	strict bool // warnings count like mistakes
	list   bool // tests that pass, too
	tests  testOptions
	keys   policysign.Keys
}

// check reads policy files and reports on each: all mistakes, or what the file
// comes to.
func check(ctx context.Context, std Streams, args []string) int {
	c := checkCommand{std: std}
	fs := newFlags(std, "check")
	fs.StringVar(&c.format, "format", "text", "the `FORMAT` of the output: text, json with one object a file, or sarif")
	fs.BoolVar(&c.strict, "strict", false, "exit with 1 where there are warnings, too")
	run := fs.String("run", "", "run only the tests in the policy whose names match `REGEXP`")
	fs.BoolVar(&c.list, "list-tests", false, "list all tests, those that pass, too")
	schema := fs.Bool("schema", false, "print the JSON Schema of policy files, for editors")
	keyFiles := policyKeysFlag(fs)
	files, code, ok := fs.parse(args)
	switch {
	case !ok:
		return code
	case *schema && len(files) > 0:
		return fs.usageError("--schema takes no files: it prints the schema that editors check them by")
	case *schema:
		std.Out.Write(policy.JSONSchema())
		return exitOK
	case len(files) == 0:
		return fs.usageError("no policy given: a file, a directory, - for standard input, or a database such as postgres://HOST/DATABASE")
	case !slices.Contains([]string{"text", "json", "sarif"}, c.format):
		return fs.usageError("unknown format %q: it must be text, json or sarif", c.format)
	}
	var err error
	if *run != "" {
		if c.tests.Run, err = regexp.Compile(*run); err != nil {
			return fs.usageError("--run: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
		}
	}
	if c.keys, err = policysign.ReadKeys(*keyFiles...); err != nil {
		return fail(std, exitUsage, "check", err)
	}
	if files, err = policiesIn(files); err != nil {
		return fail(std, exitUsage, "check", err)
	}
	return c.files(ctx, files)
}

// files checks each of files, prints what there is to say of it, and returns the
// worst of their exit codes.
func (c *checkCommand) files(ctx context.Context, files []string) int {
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
		return max(worst, fail(c.std, exitNo, "check", errors.New("--run: no test has a name like that")))
	}
	return worst
}
