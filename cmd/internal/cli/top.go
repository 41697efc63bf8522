// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"net/http"
	"os"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/client"
	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/cmd/internal/top"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/topkeys"
)

const topAbout = `
Shows who is limited now: the keys that were denied most in about the last
minute, by the server whose admin address it asks. On a terminal it goes on
until you press q; elsewhere, and with --once, it shows one list and ends.

  DENIED   how often in that time, or a range where the server cannot tell
  /S       the same per second
  SHARE    of all that the rule denied
  FIRST    since when it goes on, without a pause of half a minute
  LAST     when it was last denied
  RETRY    how long until it is admitted again
  RULE     the rule or, where it has several limits, rule/limit
  KEY      what the limit goes by: limit_keys and their values

On a terminal, d shows what was denied, s what a rule in shadow would have
denied, and n requests that were admitted and left at most a fifth of a limit;
r goes from rule to rule, o changes the order, and p pauses. The arrows select
a key, and Enter shows its details, with commands to copy. Above the list are
the requests per second since mete top started; degraded ones were decided
without the store. Where NO_COLOR is set, there is no color.

~ stands for a hash of what may be a secret. Block somebody with what is shown,
or with the key that --format json shows:

  mete override set --action block --match ip:address=192.0.2.1 --expires 1h \
    --reason 'floods the search'
  mete override set --action block --key 'free:x-key=~8jDYDwkGJ7yQvT3mB0aLpA' \
    --expires 1h --reason 'floods the search'

Without a token of the role operate, keys are masked. The counts are those of
one server, since it was last started, and of what a limit denied: not of what
an override blocks.

The exit code is 0, or 2 on wrong usage or if the server refuses, and 3 if it
does not answer. Once a list was shown on a terminal, it goes on trying.
`

// minInterval bounds how often a server is asked.
const minInterval = 100 * time.Millisecond

// A topCommand is one call of mete top.
type topCommand struct {
	std Streams
	connection
	top.Options
	once   bool
	format string
}

// showTop is "mete top".
func showTop(ctx context.Context, std Streams, args []string) int {
	c := &topCommand{std: std}
	code, ok := c.parse(args)
	if !ok {
		return code
	}
	c.Server, c.Standard = c.server, c.server == "http://"+config.Default().AdminListen
	c.JSON, c.In, c.Out = c.format == "json", std.In, std.Out
	c.Live = !c.once && !c.JSON && isTerminal(std.Out) && os.Getenv("TERM") != "dumb"
	c.Connect = func() (*client.Client, func(), error) {
		r, err := c.reach() // which looks for the token
		if err != nil {
			return nil, nil, err
		}
		made, err := r.client(c.server)
		return made, r.http.CloseIdleConnections, err
	}
	err := top.Run(ctx, c.Options)
	if e, ok := errors.AsType[*client.Error](err); ok && e.Problem != nil && (e.Status == http.StatusNotFound || e.Status == http.StatusBadRequest) {
		return fail(std, exitUsage, "top", errors.New(e.Problem.Detail))
	}
	if err != nil {
		return fail(std, exitCode(err), "top", explain(c.server, err))
	}
	return exitOK
}

// parse reads and checks the arguments. Where ok is false it has said why.
func (c *topCommand) parse(args []string) (code int, ok bool) {
	fs := newFlags(c.std, "top")
	c.flags(fs, "`URL` of a server's admin address", "http://"+config.Default().AdminListen)
	fs.StringVar(&c.Query.Rule, "rule", "", "show keys of the rule `NAME` alone")
	fs.StringVar(&c.Query.Kind, "kind", topkeys.Denied.String(), "`WORD` for what is shown, at first: denied, shadow or near")
	fs.IntVar(&c.Query.Limit, "limit", httpapi.DefaultTop, "show `N` keys, where it is not a terminal")
	fs.Func("window", "about the last `TIME`, such as 30s (default: as much as the server counts, 1m)", func(s string) (err error) {
		c.Query.Window, err = bucket.ParseDuration(s)
		return plain(err)
	})
	fs.DurationVar(&c.Interval, "interval", 2*time.Second, "ask again after each `TIME`")
	fs.BoolVar(&c.once, "once", false, "show one list and end, on a terminal, too")
	fs.StringVar(&c.format, "format", "text", "`FORMAT` of a list: text or json")
	operands, code, ok := fs.parse(args)
	if !ok {
		return code, false
	}
	_, kind := topkeys.ParseKind(c.Query.Kind)
	switch {
	case len(operands) > 0:
		return fs.usageError("%q is not a flag; to see one rule alone write --rule %s", operands[0], operands[0]), false
	case kind != nil:
		return fs.usageError("--kind must be denied, shadow or near, not %q", c.Query.Kind), false
	case c.Query.Limit < 1 || c.Query.Limit > httpapi.MaxTop:
		return fs.usageError("--limit must be between 1 and %d", httpapi.MaxTop), false
	case c.Interval < minInterval:
		return fs.usageError("--interval must be at least %v", minInterval), false
	case c.format != "text" && c.format != "json":
		return fs.usageError("--format must be text or json, not %q", c.format), false
	}
	return exitOK, true
}
