// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/client"
	"github.com/metehq/mete/policy"
)

const holdAbout = `
Takes an estimated cost, as 'mete take' does, and prints the ID of a hold. After
the work, 'mete settle' replaces the estimate by the actual cost, from any
machine. 'mete release' settles with 0, and 'mete renew' postpones the expiry.
An expired hold keeps its charge, or is refunded with --refund.

  id=$(mete hold --cost 4000 --ttl 5m header:x-user=kim)
  mete settle "$id" --cost 812

The ID has no underscore if no rule with a bucket applies, or if the store
failed and the policy allows the request. Settling it changes nothing.

Under a concurrency limit, the hold also takes a slot, which --format json
shows. Release it when the work has ended: see 'mete slots'.

Exit codes:
  0  the request is allowed; the output is the ID
  1  the request is denied; the output is the decision
  2  wrong usage
  3  the server or its store does not answer
  4  the server rejects the request, for example because of its token
`

const endHoldExits = `
The command may be repeated: the first settlement counts.

Exit codes:
  0  done
  1  the hold is unknown or has expired, or a limit cannot owe the excess
  2  wrong usage
  3  the server or its store does not answer
  4  the server rejects the request, for example because of its token
`

const settleAbout = `
Replaces the estimate of a hold by the actual cost: the rest is refunded, and an
excess is owed by the bucket.

With --usage, each limit computes its own cost from the tokens of a language
model: tokens by its weights, or money by its prices. The classes are input,
cached, cache_write, output and reasoning, without overlap.

  mete settle "$id" --usage input=812,output=208

The weights and prices are those of the policy when the hold was taken. If
another model has answered, --model names it, and the prices of the current
policy count.
` + endHoldExits

const releaseAbout = `
Settles a hold with 0, because its work did not happen. Fixed costs of rules
stay.
` + endHoldExits

const renewAbout = `
Makes an open hold expire later: --for from now.
` + endHoldExits

func newHoldCommand(std Streams) *cobra.Command {
	q, options := &question{std: std}, client.HoldOptions{}
	cmd := newQuestionCommand(q, &cobra.Command{Use: "hold [flags] [NAME=VALUE ...]", Short: "Take an estimate, and settle it later", Long: holdAbout},
		mainURL(), func(ctx context.Context, c *client.Client) error { return q.hold(ctx, c, options) }, nil)
	q.addCost(cmd, "hold `TOKENS`, such as 1 or 0.25 (default: the cost in the policy)")
	q.addMaxWait(cmd, "reserve tokens that come within `DURATION`, such as 2s, and wait for them")
	cmd.Flags().StringVar(&q.ID, "id", "", "charge once for all attempts at one request, which have the same `ID`")
	addTTL(cmd, "ttl", &options.TTL, "expire after `DURATION`, such as 5m (default 1m)")
	cmd.Flags().BoolVar(&options.Refund, "refund", false, "refund the hold if it expires")
	return cmd
}

func (q *question) hold(ctx context.Context, c *client.Client, options client.HoldOptions) error {
	h, err := c.Hold(ctx, q.Request, options)
	if err != nil {
		return failClient(q.server, err)
	}
	switch {
	case q.format == "json":
		err = writeJSON(q.std.Out, h)
	case h.Allowed:
		_, err = fmt.Fprintln(q.std.Out, h.Hold)
	default:
		err = printDecision(q.std.Out, q.format, h.Decision)
	}
	switch {
	case !h.Allowed && h.Reason == mete.ReasonStoreError:
		return exitAfterOutput(err, exitUnreachable)
	case !h.Allowed:
		return exitAfterOutput(err, exitNo)
	case err == nil && h.Wait > 0:
		return await(ctx, q.std, h.Wait.Duration())
	}
	return err
}

// A holdEnd is a call about an existing hold.
type holdEnd struct {
	std Streams
	connection
	format string
	cost   float64
	usage  *client.TokenUsage
	model  string
	ttl    time.Duration
}

func newSettleCommand(std Streams) *cobra.Command {
	e := &holdEnd{std: std, cost: -1}
	cmd := e.command("settle [flags] ID", "Replace the estimate of a hold", settleAbout, func(ctx context.Context, c *client.Client, id string) (client.HoldStatus, error) {
		if e.usage != nil {
			return c.SettleUsage(ctx, id, *e.usage, e.model)
		}
		return c.Settle(ctx, id, e.cost)
	})
	cmd.PreRunE = func(*cobra.Command, []string) error { return e.checkSettlement() }
	cmd.Flags().Func("cost", "the actual cost in `TOKENS`, such as 812 or 0", func(s string) error {
		cost, err := bucket.ParseTokens(s)
		e.cost = float64(mete.TokensOf(cost))
		return trimPackage(err)
	})
	cmd.Flags().Func("usage", "the tokens by `CLASS=N[,...]`, such as input=812,output=208", func(s string) (err error) {
		e.usage, err = parseUsage(s)
		return err
	})
	cmd.Flags().StringVar(&e.model, "model", "", "the `MODEL` that answered (default: ai:model of the hold)")
	return cmd
}

func (e *holdEnd) checkSettlement() error {
	switch {
	case e.cost >= 0 && e.usage != nil:
		return usageError("--cost and --usage are both there: set one of them")
	case e.cost < 0 && e.usage == nil:
		return usageError("the cost is missing: set --cost, such as --cost 812, or --usage, such as --usage input=812,output=208")
	case e.usage == nil && e.model != "":
		return usageError("--model has no effect on a cost: set --usage")
	}
	return nil
}

// parseUsage parses classes of tokens, such as input=812,output=208.
func parseUsage(s string) (*client.TokenUsage, error) {
	var u policy.TokenUsage
	seen := map[string]bool{}
	for item := range strings.SplitSeq(s, ",") {
		class, tokens, _ := strings.Cut(item, "=")
		if seen[class] {
			return nil, fmt.Errorf("class %q is there twice: set it once", class)
		}
		seen[class] = true
		if err := u.Set(class, tokens); err != nil {
			return nil, errors.New(strings.TrimPrefix(err.Error(), "usage: "))
		}
	}
	return &client.TokenUsage{Input: u.Input, Cached: u.Cached, CacheWrite: u.CacheWrite, Output: u.Output, Reasoning: u.Reasoning}, nil
}

func newReleaseCommand(std Streams) *cobra.Command {
	e := &holdEnd{std: std}
	return e.command("release [flags] ID", "Undo a hold", releaseAbout, func(ctx context.Context, c *client.Client, id string) (client.HoldStatus, error) {
		return c.Release(ctx, id)
	})
}

func newRenewCommand(std Streams) *cobra.Command {
	e := &holdEnd{std: std}
	cmd := e.command("renew [flags] ID", "Make a hold expire later", renewAbout, func(ctx context.Context, c *client.Client, id string) (client.HoldStatus, error) {
		return c.Renew(ctx, id, e.ttl)
	})
	addTTL(cmd, "for", &e.ttl, "expire after `DURATION` from now, such as 5m")
	_ = cmd.MarkFlagRequired("for")
	return cmd
}

func addTTL(cmd *cobra.Command, name string, to *time.Duration, usage string) {
	cmd.Flags().Func(name, usage, func(s string) (err error) {
		if *to, err = bucket.ParseDuration(s); err == nil && *to <= 0 {
			err = errors.New("a duration must be above 0")
		}
		return trimPackage(err)
	})
}

func (e *holdEnd) command(use, short, long string, call func(context.Context, *client.Client, string) (client.HoldStatus, error)) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Long: long, RunE: func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 || args[0] == "" {
			return usageError("the ID of a hold is required, as 'mete hold' prints it")
		}
		c, err := e.newClient()
		if err != nil {
			return fail(exitUsage, err)
		}
		status, err := call(cmd.Context(), c, args[0])
		if err != nil {
			return e.fail(err)
		}
		if e.format == "json" {
			return writeJSON(e.std.Out, status)
		}
		_, err = fmt.Fprintln(e.std.Out, holdText(&status))
		return err
	}}
	addFormat(cmd, &e.format, "text", "json")
	cmd.Flags().AddFlagSet(e.flags(mainURL()))
	return cmd
}

// fail returns the exit code for an error. The server decided about an unknown or ended hold.
func (e *holdEnd) fail(err error) error {
	if answer, ok := errors.AsType[*client.Error](err); ok && (answer.Status == http.StatusNotFound || answer.Status == http.StatusConflict) && answer.Problem != nil {
		return fail(exitNo, errors.New(answer.Problem.Detail))
	}
	return failClient(e.server, err)
}

func holdText(s *client.HoldStatus) string {
	switch {
	case s.State == "open" && s.Expires != nil:
		return "open until " + s.Expires.Format(time.RFC3339)
	case s.Cost == nil && s.Expires == nil:
		return "no bucket had a hold"
	case s.Cost == nil && s.Settled:
		return "settled by usage"
	case s.Cost == nil:
		return "already settled by usage"
	case s.Settled:
		return fmt.Sprintf("settled with %s", s.Cost)
	}
	return fmt.Sprintf("already settled with %s", s.Cost)
}
