// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/client"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/monitor"
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
r goes from rule to rule, and p stops and goes on. The arrows choose a key, and
Enter shows all that is known of it, with commands to copy. Above the list is
what goes on now: how many requests a second, and how that was since you look.
Degraded are those that were decided without the store. Where NO_COLOR is set,
there is no colour.

~ stands for a hash of what may be a secret. Block somebody with what is shown,
or with the key that --format json shows:

  mete override set --action block --match ip:address=192.0.2.1 --expires 1h \
    --reason 'floods the search'
  mete override set --action block --key 'free:x-key=~8jDYDwkGJ7yQvT3mB0aLpA' \
    --expires 1h --reason 'floods the search'

Without a token of the role operate, keys are masked. The counts are those of
one server, since it was last started, and of what a limit denied: not of what
an override blocks.

The exit code is 0, 2 on wrong usage, 3 if the server does not answer, and 4 if
it refuses. Once a list was shown on a terminal, it goes on trying.
`

const (
	// minInterval bounds how often a server is asked.
	minInterval = 100 * time.Millisecond

	// topPatience bounds how long an answer may take.
	topPatience = 5 * time.Second
)

// A topCommand is one call of mete top.
type topCommand struct {
	std Streams
	connection
	query    client.TopQuery
	interval time.Duration
	once     bool
	format   string
}

// newTopCommand returns "mete top".
func newTopCommand(std Streams) *cobra.Command {
	c := &topCommand{std: std}
	cmd := &cobra.Command{
		Use: "top [flags]", Short: "Show the keys that are denied most, now", Long: topAbout,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError("unexpected argument %q; to see one rule alone write --rule %s", args[0], args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case c.query.Limit < 1 || c.query.Limit > httpapi.MaxTop:
				return usageError("--count must be between 1 and %d", httpapi.MaxTop)
			case c.interval < minInterval:
				return usageError("--interval must be at least %v", minInterval)
			}
			return c.run(cmd.Context())
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&c.query.Rule, "rule", "", "show only keys of the rule `NAME`")
	completeRules(cmd)
	addChoice(cmd, &c.query.Kind, "kind", "the `KIND` of keys that are shown first", topkeys.Denied.String(), topkeys.Shadow.String(), topkeys.Near.String())
	fs.IntVar(&c.query.Limit, "count", httpapi.DefaultTop, "show `N` keys, where it is not a terminal")
	fs.Func("window", "show the last `TIME`, such as 30s (default: as much as the server counts, 1m)", func(s string) (err error) {
		c.query.Window, err = bucket.ParseDuration(s)
		return plain(err)
	})
	fs.DurationVar(&c.interval, "interval", 2*time.Second, "ask again after each `TIME`")
	fs.BoolVar(&c.once, "once", false, "show one list and end, on a terminal, too")
	addFormat(cmd, &c.format, "text", "json")
	fs.AddFlagSet(c.flags(adminURL()))
	return cmd
}

// run shows one list or, on a terminal, a list that is kept up to date.
func (c *topCommand) run(ctx context.Context) error {
	live := newTerminal(c.std)
	if c.once || c.format == "json" || live == nil {
		return c.snapshot(ctx)
	}
	_, height := live.size()
	first := c.ask(ctx, topQuestion{c.query.Kind, c.query.Rule, height})
	if first.err != nil {
		return c.fail(first.err)
	}
	if err := live.begin(); err != nil {
		return fail(exitUsage, err)
	}
	defer live.end()
	v := &topView{terminal: live, server: c.server, interval: c.interval, ask: c.ask, question: first.topQuestion}
	v.question.kind = first.top.Kind
	v.take(&first)
	v.run(ctx)
	return nil
}

// snapshot shows one list.
func (c *topCommand) snapshot(ctx context.Context) error {
	server, err := c.client()
	if err != nil {
		return c.fail(err)
	}
	answer, err := c.keys(ctx, server, topQuestion{c.query.Kind, c.query.Rule, c.query.Limit})
	if err != nil {
		return c.fail(err)
	}
	if c.format == "json" {
		return writeJSON(c.std.Out, answer)
	}
	_, err = io.WriteString(c.std.Out, topText(&answer, c.query.Limit))
	return err
}

// ask asks the server once. It looks for the token each time: a server that was started
// again has left another one.
func (c *topCommand) ask(ctx context.Context, q topQuestion) topAnswer {
	a := topAnswer{topQuestion: q}
	r, err := c.reach()
	if err != nil {
		a.err = err
		return a
	}
	defer r.http.CloseIdleConnections()
	server, err := r.client(c.server)
	if err != nil {
		a.err = err
		return a
	}
	if a.top, a.err = c.keys(ctx, server, q); a.err != nil {
		return a
	}
	ctx, cancel := context.WithTimeout(ctx, topPatience)
	defer cancel()
	window := min(max(c.interval.Round(monitor.Interval), monitor.Interval), monitor.TrafficWindow)
	if t, err := server.Traffic(ctx, window); err == nil { // not every server tells it
		a.traffic = &t
	}
	return a
}

// keys asks for the keys.
func (c *topCommand) keys(ctx context.Context, server *client.Client, q topQuestion) (api.Top, error) {
	ctx, cancel := context.WithTimeout(ctx, topPatience)
	defer cancel()
	query := c.query
	query.Kind, query.Rule, query.Limit = q.kind, q.rule, min(q.limit, httpapi.MaxTop)
	return server.Top(ctx, query)
}

// fail returns an error with its exit code and a remedy.
func (c *topCommand) fail(err error) error {
	e, ok := errors.AsType[*client.Error](err)
	if ok && e.Problem != nil && (e.Status == http.StatusNotFound || e.Status == http.StatusBadRequest) {
		return fail(exitRefused, errors.New(e.Problem.Detail))
	}
	return failClient(c.server, err)
}

// newTerminal returns the terminal that a command writes to and is typed to, nil where
// there is none that can be drawn on.
func newTerminal(std Streams) *terminal {
	out, ok := std.Out.(*os.File)
	if !ok || !isTerminal(out) || os.Getenv("TERM") == "dumb" {
		return nil
	}
	t := &terminal{out: out, size: func() (int, int) { return sizeOf(out) }, colors: wantsColors()}
	if in, ok := std.In.(*os.File); ok && isTerminal(in) {
		t.in, t.raw = in, in
	}
	return t
}
