// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/metehq/mete"
	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/client"
	"github.com/metehq/mete/policy"
)

// A question is a take, peek, reset or refund: about the attributes of a request or, with --key, about one bucket.
type question struct {
	std Streams
	connection
	key, reason string
	format      string
	client.Request
}

// newQuestionCommand returns a command that calls ofBucket if --key is set and ofRequest otherwise. The caller
// adds its flags.
func newQuestionCommand(q *question, cmd *cobra.Command, server string, ofRequest, ofBucket func(context.Context, *client.Client) error) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := q.check(cmd, args); err != nil {
			return err
		}
		ask := ofRequest
		if q.key != "" {
			ask = ofBucket
		}
		c, err := q.newClient()
		if err != nil {
			return fail(exitUsage, err)
		}
		return ask(cmd.Context(), c)
	}
	cmd.ValidArgsFunction = completeAttributes
	addFormat(cmd, &q.format, "text", "json")
	cmd.Flags().AddFlagSet(q.flags(server))
	return cmd
}

// addKey defines --key and, if the command changes the bucket, --reason.
func (q *question) addKey(cmd *cobra.Command, verb string, changes bool) {
	cmd.Flags().StringVar(&q.key, "key", "", verb+" the bucket with that `KEY`, as explain and top show it; uses the admin address")
	if changes {
		cmd.Flags().StringVar(&q.reason, "reason", "", "with --key: `WHY`, for the log and the audit trail")
	}
}

func (q *question) addCost(cmd *cobra.Command, usage string) {
	cmd.Flags().Func("cost", usage, func(s string) error {
		cost, err := bucket.ParseTokens(s)
		if err == nil && cost == 0 {
			err = errors.New("a cost must be above 0")
		}
		q.Cost = float64(mete.TokensOf(cost))
		return trimPackage(err)
	})
}

func (q *question) addMaxWait(cmd *cobra.Command, usage string) {
	cmd.Flags().Func("max-wait", usage, func(s string) (err error) {
		q.MaxWait, err = bucket.ParseDuration(s)
		return trimPackage(err)
	})
}

func (q *question) check(cmd *cobra.Command, args []string) error {
	if q.key != "" {
		return q.checkKey(cmd, args)
	}
	if q.reason != "" {
		return usageError("--reason requires --key")
	}
	var err error
	q.Attributes, err = readAttributes(args)
	return err
}

func readAttributes(args []string) (map[string]string, error) {
	attributes := map[string]string{}
	for _, arg := range args {
		name, value, found := strings.Cut(arg, "=")
		if !found {
			return nil, usageError("%q is not NAME=VALUE, such as header:x-api-key=k1", arg)
		}
		attribute, err := policy.ParseAttribute(name)
		if err != nil {
			return nil, usageError("%w", trimPackage(err))
		}
		if _, twice := attributes[attribute.String()]; twice {
			return nil, usageError("attribute %s is given twice", attribute)
		}
		attributes[attribute.String()] = value
	}
	return attributes, nil
}

// checkKey rejects arguments and flags that describe a request. It selects the admin address, which serves the
// bucket API, as the default server.
func (q *question) checkKey(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError("--key and the attribute %q exclude each other: --key names a bucket, not a request", args[0])
	}
	for _, name := range []string{"max-wait", "id"} {
		if cmd.Flags().Changed(name) {
			return usageError("--%s and --key exclude each other", name)
		}
	}
	if cmd.Name() == "peek" && cmd.Flags().Changed("cost") {
		return usageError("--cost and --key exclude each other")
	}
	if !cmd.Flags().Changed("server") {
		q.server = adminURL()
	}
	return nil
}

func (q *question) write(answer any, text string) error {
	if q.format == "json" {
		return writeJSON(q.std.Out, answer)
	}
	_, err := fmt.Fprint(q.std.Out, text)
	return err
}

// An amendment is the JSON output of reset and refund for a request.
type amendment struct {
	Done bool `json:"done"`
}

// amend calls do, which resets or refunds the buckets of a request. It fails if no limit applies to the request,
// because then its attributes are probably wrong.
func (q *question) amend(ctx context.Context, c *client.Client, do func(context.Context, client.Request) error) error {
	if len(q.Attributes) == 0 {
		return usageError("the attributes of a request are required: NAME=VALUE, such as header:x-api-key=k1")
	}
	if err := do(ctx, q.Request); err != nil {
		return failClient(q.server, err)
	}
	if e, err := c.Explain(ctx, q.Request); err == nil && noLimit(&e) {
		if q.format == "json" {
			return exitAfterOutput(writeJSON(q.std.Out, amendment{}), exitNo)
		}
		return fail(exitNo, errors.New("no limit applies to the request, so nothing was done; 'mete explain' shows why"))
	}
	return q.write(amendment{Done: true}, "done\n")
}

// noLimit reports whether no limit applies to the request, not even in shadow mode. If an override decides the
// request, noLimit returns false.
func noLimit(e *api.Explanation) bool {
	return e.Override == nil && !slices.ContainsFunc(e.Rules, func(r api.ExplainedRule) bool { return len(r.Limits) > 0 })
}

// trimPackage removes the package name from the front of an error message.
func trimPackage(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	for _, prefix := range []string{"bucket: ", "policy: ", "client: new: ", "requesttext: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return errors.New(text)
}
