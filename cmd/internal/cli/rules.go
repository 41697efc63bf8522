// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/pgstore/rules"
	"github.com/metehq/mete/store"
)

const rulesAbout = `
Shows and changes the rules in a PostgreSQL database. Servers with
--policy postgres://HOST/DATABASE follow them, and use a change within a second.
The command creates missing tables. It only writes rules that form a valid
policy.

The name of a rule is part of the keys of its buckets, so the buckets of a
renamed rule start full. doc/rules.md describes the columns.

Exit codes:
  0  done, or nothing to change
  1  the rules are invalid, or no rule has that name or version
  2  wrong usage
  3  the database does not answer
`

type rulesCommand struct {
	std      Streams
	flags    *pflag.FlagSet // of the subcommand
	operands []string

	db, format               string
	pattern, scope, plan     string
	policy                   string
	rate, burst, description string
	mode, spec               string
	priority                 int32
	version                  int64
	replace, dryRun          bool
}

func (c *rulesCommand) isSet(name string) bool { return c.flags.Changed(name) }

const rulesSetAbout = `
Changes or adds the rule with the given name or, without a name, with the given
--pattern and --plan. Fields without a flag keep their values.
`

// An unmetError rejects a valid request, because the rule does not exist or has another version.
type unmetError string

func (e unmetError) Error() string { return string(e) }

func newRulesCommand(std Streams) *cobra.Command {
	c := &rulesCommand{std: std}
	cmd := &cobra.Command{
		Use: "rules COMMAND --db URL [flags]", Short: "Show and change the rules in a database", Long: rulesAbout,
		Args: cobra.ArbitraryArgs, RunE: unknownCommand,
	}
	cmd.PersistentFlags().StringVar(&c.db, "db", "", "the `URL` of the database: postgres://HOST/DATABASE?schema=mete")
	cmd.AddCommand(
		c.newList(),
		c.newSet(),
		c.newChange("enable", "Activate rules", c.enable),
		c.newChange("disable", "Deactivate rules without removing them", c.disable),
		c.newChange("delete", "Remove rules", c.remove),
		c.newImport(),
		c.newExport(),
	)
	return cmd
}

// subcommand returns a subcommand that opens the database and calls do.
func (c *rulesCommand) subcommand(use, short string, do func(context.Context, *rules.Source) error, check func(args []string) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, RunE: func(cmd *cobra.Command, args []string) error {
		c.flags, c.operands = cmd.Flags(), args
		if err := check(args); err != nil {
			return err
		}
		if c.db == "" {
			return usageError("no --db given")
		}
		return c.run(cmd.Context(), do)
	}}
}

func (c *rulesCommand) newList() *cobra.Command {
	cmd := c.subcommand("list [NAME ...]", "Show the rules, or those with these names", c.list, func([]string) error { return nil })
	addFormat(cmd, &c.format, "text", "json")
	return cmd
}

func (c *rulesCommand) newSet() *cobra.Command {
	cmd := c.subcommand("set [NAME]", "Change a rule, or add it", c.set, c.checkSet)
	cmd.Long = rulesSetAbout
	fs := cmd.Flags()
	fs.StringVar(&c.pattern, "pattern", "", "the requests that share a bucket, as a `PATTERN` such as user:{user_id}, endpoint:/api/search or global")
	fs.StringVar(&c.scope, "scope", "", "the scope, a `WORD` for readers: user, endpoint, ip, global or custom (default: from the pattern)")
	fs.StringVar(&c.plan, "plan", "", "the `PLAN` whose requests count; empty is all")
	fs.StringVar(&c.rate, "rate", "", "tokens per second, a decimal `NUMBER`, or a rate such as 5/1m")
	fs.StringVar(&c.burst, "burst", "", "the capacity of a bucket, a `NUMBER` of tokens")
	fs.StringVar(&c.mode, "mode", "", "the mode of the rule, a `WORD`: off, shadow, a share of the keys such as 25%, or enforce")
	fs.StringVar(&c.description, "description", "", "a description, a `TEXT`")
	fs.StringVar(&c.spec, "spec", "", "fields of the rule, as a `JSON` object; null removes a field, and other fields stay")
	fs.StringVar(&c.policy, "policy", "", "the `NAME` of the policy that the rule belongs to")
	fs.Int32Var(&c.priority, "priority", 0, "the position within a group of rules, a `NUMBER`, lowest first")
	c.addVersion(cmd)
	c.addDryRun(cmd)
	return cmd
}

// newChange returns a subcommand that changes rules by name.
func (c *rulesCommand) newChange(verb, short string, do func(context.Context, *rules.Source) error) *cobra.Command {
	cmd := c.subcommand(verb+" NAME ...", short, do, func(args []string) error {
		switch {
		case len(args) == 0:
			return usageError("the name of a rule is required")
		case c.isSet("if-version") && len(args) > 1:
			return usageError("--if-version requires exactly one rule")
		}
		return nil
	})
	c.addVersion(cmd)
	c.addDryRun(cmd)
	return cmd
}

func (c *rulesCommand) newImport() *cobra.Command {
	var policy string
	cmd := c.subcommand("import POLICY", "Import the rules of a policy file", c.importFile, func(args []string) error {
		if rest := policyArgument(&policy, args); policy == "" || len(rest) > 0 {
			return usageError("one policy file is required; - is standard input")
		}
		c.operands = []string{policy}
		return nil
	})
	addPolicy(cmd, &policy, "import the policy `FILE`, like an argument")
	cmd.Flags().BoolVar(&c.replace, "replace", false, "deactivate rules that are not in the file")
	c.addDryRun(cmd)
	return cmd
}

func (c *rulesCommand) newExport() *cobra.Command {
	cmd := c.subcommand("export", "Export the active rules as a policy file", c.export, func(args []string) error { return noArgs(nil, args) })
	addFormat(cmd, &c.format, "yaml", "json")
	return cmd
}

func (c *rulesCommand) addVersion(cmd *cobra.Command) {
	cmd.Flags().Int64Var(&c.version, "if-version", 0, "change a rule only if it has the version `N`, as list shows it")
}

func (c *rulesCommand) addDryRun(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&c.dryRun, "dry-run", false, "print the changes without writing them")
	addFormat(cmd, &c.format, "text", "json")
}

// run opens the database and calls do.
func (c *rulesCommand) run(ctx context.Context, do func(context.Context, *rules.Source) error) error {
	source, err := rules.Open(ctx, c.db, rules.Config{})
	if err == nil {
		defer source.Close()
		err = do(ctx, source)
	}
	switch _, isUnmet := errors.AsType[unmetError](err); {
	case err == nil:
		return nil
	case isUnmet, isPolicyError(err):
		return failEach(exitNo, err)
	}
	text := errors.New(strings.TrimPrefix(err.Error(), "rules: ")) // the command prints its own name
	if errors.Is(err, store.ErrUnavailable) {
		return fail(exitUnreachable, text)
	}
	return fail(exitUsage, text)
}

func (c *rulesCommand) checkSet(args []string) error {
	switch {
	case len(args) > 1:
		return usageError("set changes one rule: unexpected argument %q", args[1])
	case len(args) == 0 && c.pattern == "":
		return usageError("the name of a rule is required, or --pattern")
	case strings.Contains(c.rate, "/"):
		if _, err := bucket.ParseRate(c.rate); err != nil {
			return usageError("--rate: %q is neither a number of tokens per second nor a rate such as 5/1m", c.rate)
		}
	}
	return nil
}
