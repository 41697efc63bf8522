// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/user"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/client"
	"github.com/metehq/mete/internal/visible"
	"github.com/metehq/mete/policy"
)

const overrideAbout = `
Shows and changes overrides. An override is an exception to the policy: it
blocks requests, allows them or changes their limit. It has a reason, an author
and an expiry. An override applies within about a second on all servers that
share the store, and survives restarts and reloads. Use the admin address of any
server.

Block an abuser now, and for two hours:

  mete override set --action block --match header:x-api-key=k1 --expires 2h \
    --reason 'scrapes the catalog'

Raise the limit of rule "free" for one client, until tomorrow:

  mete override set --action limit --rule free --match header:x-api-key=k1 \
    --rps 100 --burst 200 --expires 24h --reason 'moves their data'

Put all rules in shadow mode, or allow every request regardless of all settings:

  mete override set --action shadow --expires 30m --reason 'a rule is wrong'
  mete override set --action break_glass --expires 15m --reason 'fire'

While the store is down, or for one server only:

  mete override set --local --action break_glass --expires 10m --reason 'fire'

If --match is repeated, all attributes must match. An attribute that is repeated
matches either value. Values have the syntax of policy files: a prefix*, or a
network for ip:address. --key is the key of a bucket, as 'mete explain' shows
it.

With --file, set creates the overrides in a JSON or YAML file: one override as
in a policy file, or a list. The file - is standard input. The default author is
the user of the command.

Exit codes:
  0  done
  1  an override is invalid, or has an unknown ID
  2  wrong usage
  3  the server or its store does not answer
  4  the server rejects the request
`

type overrideCommand struct {
	std    Streams
	client *client.Client

	connection
	format                  string
	audit                   int
	action, id, key         string
	match, rules            []string
	all, local              bool
	rps, rate, burst        string
	reason, author, expires string
	file                    string

	subject string // the ID of the override in the next error
}

// newOverrideCommand returns "mete override". Without a subcommand it lists overrides.
func newOverrideCommand(std Streams) *cobra.Command {
	c := &overrideCommand{std: std}
	list := func(cmd *cobra.Command) *cobra.Command {
		cmd.Flags().IntVar(&c.audit, "audit", 0, "also show the last `N` changes")
		return cmd
	}
	cmd := list(&cobra.Command{
		Use: "override [list | set | remove] [flags]", Short: "Block, allow or limit clients until an expiry", Long: overrideAbout, Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args)
			}
			return c.run(cmd.Context(), c.list)
		},
	})
	cmd.PersistentFlags().AddFlagSet(c.flags(adminURL()))
	addPersistentFormat(cmd, &c.format, "text", "json")
	cmd.AddCommand(
		list(&cobra.Command{
			Use: "list", Short: "List overrides, including those in the policy file", Args: noArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context(), c.list) },
		}),
		newOverrideSet(c),
		newOverrideRemove(c),
	)
	return cmd
}

func newOverrideSet(c *overrideCommand) *cobra.Command {
	cmd := &cobra.Command{
		Use: "set", Short: "Create an override, or replace the one with this --id", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.checkSet(cmd); err != nil {
				return err
			}
			return c.run(cmd.Context(), c.set)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&c.action, "action", "", "the effect, a `WORD`: "+joinWords(actionWords()))
	completeWords(cmd, "action", actionWords()...)
	fs.StringArrayVar(&c.match, "match", nil, "the requests, as `NAME=VALUE`; may be repeated")
	fs.BoolVar(&c.all, "all", false, "with --action limit: every bucket of the rule, instead of --match")
	fs.StringVar(&c.key, "key", "", "requests that spend from the bucket with this `KEY`, instead of --match")
	fs.StringArrayVar(&c.rules, "rule", nil, "the `NAME` of a rule that the override changes; may be repeated")
	completeRules(cmd)
	fs.StringVar(&c.rps, "rps", "", "with --action limit: tokens per second, a decimal `NUMBER`")
	fs.StringVar(&c.rate, "rate", "", "with --action limit: a `RATE` such as 5/1m, instead of --rps")
	fs.StringVar(&c.burst, "burst", "", "with --action limit: the capacity of a bucket, a `NUMBER` of tokens")
	fs.StringVar(&c.id, "id", "", "the ID of the override, a `NAME` (default: generated)")
	fs.BoolVar(&c.local, "local", false, "create the override on this server only, for at most an hour; works while the store is down")
	fs.StringVar(&c.expires, "expires", "", "the expiry: a `TIME` from now such as 2h, or a timestamp such as 2026-01-02T15:04:05Z")
	fs.StringVarP(&c.file, "file", "f", "", "create the overrides in `FILE`; - is standard input")
	c.addReason(cmd)
	return cmd
}

func newOverrideRemove(c *overrideCommand) *cobra.Command {
	cmd := &cobra.Command{
		Use: "remove ID ...", Short: "Remove overrides", ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError("the ID of an override is required: see 'mete override list'")
			}
			c.findAuthor(cmd)
			if err := c.checkReason(); err != nil {
				return err
			}
			return c.run(cmd.Context(), func(ctx context.Context) error { return c.remove(ctx, args) })
		},
	}
	c.addReason(cmd)
	return cmd
}

func (c *overrideCommand) addReason(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.reason, "reason", "", "the reason, a `TEXT` for the audit trail")
	cmd.Flags().StringVar(&c.author, "author", "", "the `NAME` of the author (default: the user of the command)")
}

func (c *overrideCommand) run(ctx context.Context, do func(context.Context) error) (err error) {
	if c.audit < 0 {
		return usageError("--audit must not be negative")
	}
	if c.client, err = c.connection.newClient(); err != nil {
		return fail(exitUsage, err)
	}
	return c.fail(do(ctx))
}

func actionWords() (words []string) {
	for _, kind := range policy.Actions() {
		words = append(words, string(kind.Action))
	}
	return words
}

// currentUser returns the name of the current user. Containers and cron do not set USER; then it
// returns the account name.
func currentUser() string {
	if name := os.Getenv("USER"); name != "" {
		return name
	}
	if account, err := user.Current(); err == nil {
		return account.Username
	}
	return ""
}

func (c *overrideCommand) checkSet(cmd *cobra.Command) (err error) {
	c.findAuthor(cmd)
	if c.file != "" {
		cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if f.Changed && f.Name != "file" {
				err = usageError("--file describes the whole override: remove --%s", f.Name)
			}
		})
		return err
	}
	if err := c.checkReason(); err != nil {
		return err
	}
	switch {
	case c.all && (c.action != "limit" || len(c.match) > 0 || c.key != ""):
		return usageError("--all requires --action limit and excludes --match and --key")
	case c.action == "":
		return usageError("an effect is required: --action %s", joinWords(actionWords()))
	case c.action == "limit" && c.rps == "" && c.rate == "":
		return usageError("a limit is required: --rps NUMBER or --rate RATE, optionally with --burst")
	case c.expires == "":
		return usageError("an end is required: --expires 2h")
	}
	return nil
}

func (c *overrideCommand) findAuthor(cmd *cobra.Command) {
	if !cmd.Flags().Changed("author") {
		c.author = currentUser()
	}
}

func (c *overrideCommand) checkReason() error {
	switch {
	case c.reason == "":
		return usageError("a reason is required: --reason TEXT")
	case c.author == "":
		return usageError("an author is required: --author NAME")
	}
	return nil
}

// fail adds the exit code to err and lists all errors that the server reports.
func (c *overrideCommand) fail(err error) error {
	e, ok := errors.AsType[*client.Error](err)
	switch {
	case err == nil:
		return nil
	case !ok:
		return fail(exitUsage, err)
	case e.Problem != nil && len(e.Problem.Mistakes) > 0:
		var lines []error
		for _, m := range e.Problem.Mistakes {
			lines = append(lines, errors.New(visible.Text(c.subject)+formatErrorDetail(m)))
		}
		return failEach(exitNo, errors.Join(lines...))
	case e.Problem != nil && (e.Status == http.StatusNotFound && c.subject != "" || e.Status == http.StatusConflict):
		return fail(exitNo, errors.New(visible.Text(c.subject+e.Problem.Detail)))
	}
	return failClient(c.server, err)
}

func formatErrorDetail(m api.ErrorDetail) string {
	text := strings.TrimPrefix(m.Pointer+": "+m.Detail, ": ")
	if m.Hint != "" {
		text += "; " + m.Hint
	}
	return visible.Text(text)
}
