// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/client"
	"github.com/metehq/mete/internal/prose"
	"github.com/metehq/mete/internal/visible"
)

type ruleReset struct {
	*question
	rule string
	all  bool
}

// addRule defines --rule and --all, which make the command reset a whole rule.
func (q *question) addRule(cmd *cobra.Command) {
	r := &ruleReset{question: q}
	cmd.Flags().StringVar(&r.rule, "rule", "", "with --all: fill the buckets of the rule `NAME`")
	cmd.Flags().BoolVar(&r.all, "all", false, "with --rule: fill the buckets of all keys")
	completeRules(cmd)
	cmd.Flags().Lookup("reason").Usage = "with --key or --all: `WHY`, for the log and the audit trail"
	other := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if r.rule == "" && !r.all {
			return other(cmd, args)
		}
		switch {
		case r.rule == "" || !r.all:
			return usageError("--rule and --all go together: --rule NAME --all fills the buckets of all keys")
		case q.key != "" || len(args) > 0:
			return usageError("--rule excludes --key and the attributes of a request")
		case q.reason == "":
			return usageError("a reason is required for the audit trail: --reason WHY")
		}
		c, err := q.newClient()
		if err != nil {
			return fail(exitUsage, err)
		}
		return r.run(cmd.Context(), c)
	}
}

// run calls the server until all buckets of the rule are full. Each call resets a part of them.
func (r *ruleReset) run(ctx context.Context, c *client.Client) error {
	var done api.RuleReset
	for from := ""; ; {
		step, err := c.ResetRule(ctx, r.rule, r.reason, from)
		if done.Cleared += step.Cleared; err != nil {
			code := clientExit(err)
			err = explain(r.server, err)
			if done.Cleared > 0 {
				err = fmt.Errorf("%w\n%s filled before that; run the command again to fill the others", err, prose.Count(done.Cleared, "bucket"))
			}
			return fail(code, err)
		}
		if from = step.Next; from == "" {
			break
		}
		if isTerminal(r.std.Err) {
			fmt.Fprintf(r.std.Err, "%s so far\n", prose.Count(done.Cleared, "bucket"))
		}
	}
	return r.write(done, fmt.Sprintf("all buckets of rule %s are full; %s removed\n", visible.Text(r.rule), prose.Count(done.Cleared, "bucket")))
}
