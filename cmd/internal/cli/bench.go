// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/metehq/mete/client"
	"github.com/metehq/mete/cmd/internal/loadtest"
	"github.com/metehq/mete/store"
)

const benchAbout = `
Measures the decisions per second of a store or a server, and their latency. URL
is a store: memory:, redis://HOST, postgres://HOST/DATABASE or another URL of
--store. Or it is a server, such as http://127.0.0.1:8080, which the command
calls with POST /v1/take.

It is a load test: other users of the store or the server get slower meanwhile.
Keys in a store have a prefix that is unique to the run, and the command removes
them at the end. Requests to a server have the given attributes, in which {n}
stands for the number of the client. Without attributes, each client has a
generated API key and an address in 198.18.0.0/15, a network for load tests. The
policy of the server decides the requests, and its buckets refill as usual.
Denials count as decisions.

Without --rate, each of --concurrency callers sends a request as soon as it has
the last response. This measures the maximum throughput. With --rate, decisions
are due at a fixed rate, and the latency of each counts from its due time. This
measures the latency that clients see, even if a slow response delays others.

The run ends after --duration or --count, or with Ctrl-C, and prints its
figures.

Exit codes:
  0  there are decisions
  2  wrong usage
  3  the store or the server does not answer
  4  the server rejects the first request
`

func newBenchCommand(std Streams) *cobra.Command {
	o := loadtest.Options{Notes: std.Err}
	var c connection
	var format string
	cmd := &cobra.Command{
		Use: "bench [flags] URL [NAME=VALUE ...]", Short: "Measure a store or a server", Long: benchAbout, SuggestFor: []string{"benchmark", "load"},
		ValidArgsFunction: cobra.FixedCompletions([]string{"memory:", "redis://", "postgres://", "http://"}, cobra.ShellCompDirectiveNoSpace|cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) == 0 {
				return usageError("a URL is required: of a store, such as redis://127.0.0.1:6379, or of a server, such as %s", mainURL())
			}
			o.Target = args[0]
			if o.Attributes, err = benchAttributes(o.Target, args[1:]); err != nil {
				return err
			}
			if isServer(o.Target) {
				c.server = o.Target
				r, err := c.endpoint()
				if err != nil {
					return err
				}
				o.HTTP, o.Token = r.http, r.token
			}
			if format == "text" && isTerminal(std.Err) {
				o.Progress = std.Err
			}
			r, err := loadtest.Run(cmd.Context(), o)
			if err != nil {
				return benchError(o.Target, err)
			}
			if format == "json" {
				err = r.WriteJSON(std.Out)
			} else {
				err = r.WriteText(std.Out)
			}
			if benchUnreachable(cmd.Context(), r) {
				return exitAfterOutput(err, exitUnreachable)
			}
			return err
		},
	}
	fs := cmd.Flags()
	fs.DurationVar(&o.Duration, "duration", 0, "end after `TIME` (default 10s, or none with --count)")
	fs.Int64Var(&o.Count, "count", 0, "end after `NUMBER` decisions")
	fs.IntVar(&o.Concurrency, "concurrency", loadtest.DefaultConcurrency, "make `NUMBER` calls at a time")
	fs.IntVar(&o.Keys, "keys", loadtest.DefaultKeys, "use the buckets of `NUMBER` clients, in random order")
	fs.Float64Var(&o.Rate, "rate", 0, "begin `NUMBER` decisions per second (default: as many as possible)")
	fs.StringVar(&o.Limit, "limit", loadtest.DefaultLimit, "limit each key in a store to `RATE`; its bucket holds the tokens of one interval")
	addFormat(cmd, &format, "text", "json")
	connecting := c.flags("")
	for _, name := range []string{"token-file", "ca", "cert", "tls-key"} {
		fs.AddFlag(connecting.Lookup(name))
	}
	return cmd
}

func isServer(target string) bool {
	return strings.HasPrefix(target, "http://") || strings.HasPrefix(target, "https://")
}

func benchAttributes(target string, args []string) (map[string]string, error) {
	if len(args) > 0 && !isServer(target) {
		return nil, usageError("unexpected argument %q: only requests to a server have attributes", args[0])
	}
	return readAttributes(args)
}

// benchUnreachable reports whether a run has measured nothing because the target did not answer. An interruption before the
// first measured decision is no such failure: the target has answered the first call.
func benchUnreachable(ctx context.Context, r loadtest.Report) bool {
	return r.Decisions == 0 && (ctx.Err() == nil || len(r.Errors) > 0)
}

// benchError adds the exit code and a remedy to the error of a run.
func benchError(target string, err error) error {
	if _, ok := errors.AsType[*client.Error](err); ok {
		return failClient(target, err)
	}
	if errors.Is(err, store.ErrUnavailable) {
		return fail(exitUnreachable, fmt.Errorf("%w; start the store, or name another", err))
	}
	return err
}
