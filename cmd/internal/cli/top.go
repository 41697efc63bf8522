// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/client"
	"github.com/metehq/mete/cmd/internal/top"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/topkeys"
)

const topAbout = `
Shows the keys that a server denied most in about the last minute. On a terminal
the command updates the list until you press q. Otherwise, and with --once, it
prints one list and exits.

  DENIED   the number of denials, or a range where it is not exact
  /S       the same per second
  SHARE    the share of all denials of the rule
  FIRST    the start of the denials, without a pause of half a minute
  LAST     the last denial
  RETRY    the wait until the key is admitted again
  RULE     the rule or, where it has several limits, rule/limit
  KEY      limit_keys and their values

Keys on a terminal:
  d       denied requests
  s       requests that a rule in shadow would deny
  n       admitted requests that left at most a fifth of a limit
  r       the next rule
  o       the next order: count, last, first or key
  p       pause
  arrows  choose a key
  Enter   its details, with commands to copy. They include the slots that
          requests hold under a concurrency limit

Above the list are the requests per second. Degraded requests were decided
without the store. NO_COLOR turns colors off.

~ marks the hash of a value that may be a secret. Block a client by the
attributes in the list, or by the key that --format json shows:

  mete override set --action block --match ip:address=192.0.2.1 --expires 1h \
    --reason 'floods the search'
  mete override set --action block --key 'free:x-key=~8jDYDwkGJ7yQvT3mB0aLpA' \
    --expires 1h --reason 'floods the search'

Without a token of the role operate, keys are masked. The counts are
of one server since its start. They do not include denials by overrides.

Exit codes:
  0  done
  2  wrong usage
  3  the server does not answer; a list on a terminal keeps trying
  4  the server rejects the request
`

// minInterval is the shortest time between two calls of the server.
const minInterval = 100 * time.Millisecond

type topCommand struct {
	std Streams
	connection
	top.Options
	once   bool
	format string
}

func newTopCommand(std Streams) *cobra.Command {
	c := &topCommand{std: std}
	cmd := &cobra.Command{
		Use: "top [flags]", Short: "Show the keys that are denied most, now", Long: topAbout,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError("unexpected argument %q; to show only one rule, use --rule %s", args[0], args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case c.Query.Limit < 1 || c.Query.Limit > httpapi.MaxTop:
				return usageError("--count must be between 1 and %d", httpapi.MaxTop)
			case c.Interval < minInterval:
				return usageError("--interval must be at least %v", minInterval)
			}
			return c.run(cmd.Context())
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&c.Query.Rule, "rule", "", "show only keys of the rule `NAME`")
	completeRules(cmd)
	addChoice(cmd, &c.Query.Kind, "kind", "the `KIND` of keys to show first", topkeys.KindDenied.String(), topkeys.KindShadow.String(), topkeys.KindNear.String())
	fs.IntVar(&c.Query.Limit, "count", httpapi.DefaultTop, "show `N` keys, unless the output is a terminal")
	fs.Func("window", "show the last `TIME`, such as 30s (default: as much as the server counts, 1m)", func(s string) (err error) {
		c.Query.Window, err = bucket.ParseDuration(s)
		return trimPackage(err)
	})
	fs.DurationVar(&c.Interval, "interval", 2*time.Second, "update the list every `TIME`")
	fs.BoolVar(&c.once, "once", false, "print one list and exit, even on a terminal")
	addFormat(cmd, &c.format, "text", "json")
	fs.AddFlagSet(c.flags(adminURL()))
	return cmd
}

// run prints one list or, on a terminal, keeps a list up to date.
func (c *topCommand) run(ctx context.Context) error {
	c.Server, c.Standard = c.server, c.server == adminURL()
	c.JSON, c.In, c.Out = c.format == "json", c.std.In, c.std.Out
	c.Live = !c.once && !c.JSON && isTerminal(c.std.Out) && os.Getenv("TERM") != "dumb"
	c.Connect = func() (*client.Client, func(), error) {
		r, err := c.endpoint() // finds the token, too
		if err != nil {
			return nil, nil, err
		}
		made, err := r.newClient(c.server)
		return made, r.http.CloseIdleConnections, err
	}
	err := top.Run(ctx, c.Options)
	if e, ok := errors.AsType[*client.Error](err); ok && e.Problem != nil && (e.Status == http.StatusNotFound || e.Status == http.StatusBadRequest) {
		return fail(exitRefused, errors.New(e.Problem.Detail))
	}
	if err != nil {
		return failClient(c.server, err)
	}
	return nil
}
