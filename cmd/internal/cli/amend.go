// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"

	"github.com/metehq/mete/client"
	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/cmd/internal/prose"
)

// refund is "mete refund".
func refund(ctx context.Context, std Streams, args []string) int {
	return amend(ctx, std, "refund", args, (*client.Client).Refund)
}

// reset is "mete reset".
func reset(ctx context.Context, std Streams, args []string) int {
	return amend(ctx, std, "reset", args, (*client.Client).Reset)
}

// amend changes buckets by hand.
func amend(ctx context.Context, std Streams, name string, args []string, do func(*client.Client, context.Context, client.Request) error) int {
	q, code, ok := parseQuestion(std, name, args)
	if !ok {
		return code
	}
	c, err := q.client()
	if err == nil {
		err = do(c, ctx, q.Request)
	} else {
		return fail(std, exitUsage, name, err)
	}
	if err != nil {
		return fail(std, exitCode(err), name, explain(q.server, err))
	}
	fmt.Fprintln(std.Out, "done")
	return exitOK
}

// reload is "mete reload".
func reload(ctx context.Context, std Streams, args []string) int {
	fs := newFlags(std, "reload")
	var to connection
	to.flags(fs, "`URL` of a server's admin address", "http://"+config.Default().AdminListen)
	operands, code, ok := fs.parse(args)
	switch {
	case !ok:
		return code
	case len(operands) > 0:
		return fs.usageError("%q is not a flag: the server reads the policy that it was started with", operands[0])
	}
	c, err := to.client()
	if err != nil {
		return fail(std, exitUsage, "reload", err)
	}
	r, err := c.Reload(ctx)
	switch {
	case err != nil && exitCode(err) == exitUnreachable:
		return fail(std, exitUnreachable, "reload", explain(to.server, err))
	case err != nil:
		return fail(std, exitNo, "reload", explain(to.server, err))
	}
	fmt.Fprintf(std.Out, "in force: %s, version %d\n", prose.Count(r.Rules, "rule"), r.PolicyVersion)
	return exitOK
}
