// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/metehq/mete/api"
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
	if q.key != "" {
		return ofOneBucket(ctx, std, name, q)
	}
	c, err := q.client()
	if err != nil {
		return fail(std, exitUsage, name, err)
	}
	if err := do(c, ctx, q.Request); err != nil {
		return fail(std, exitCode(err), name, explain(q.server, err))
	}
	// Whoever misspelt the request must not believe that it helped.
	if e, err := c.Explain(ctx, q.Request); err == nil && noLimit(&e) {
		return fail(std, exitNo, name, errors.New("the request falls under no limit, so that nothing was done; 'mete explain' says why"))
	}
	fmt.Fprintln(std.Out, "done")
	return exitOK
}

// noLimit reports whether the request is known to fall under no limit, not even in
// shadow. Where an override decides, that is not said.
func noLimit(e *api.Explanation) bool {
	return e.Override == nil && !slices.ContainsFunc(e.Rules, func(r api.ExplainedRule) bool { return len(r.Limits) > 0 })
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
