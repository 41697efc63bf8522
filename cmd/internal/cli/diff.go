// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/metehq/mete/cmd/internal/policydiff"
	"github.com/metehq/mete/policy"
)

const diffAbout = `
Explains the difference between two policies: rules and overrides that are
added, removed or changed, field by field in words. It also shows rules that
have moved, so that other rules take some of their requests. For each difference
it searches for a request that the policies decide differently, and shows both
decisions.

Files that express the same policy in different ways have no difference: only
decisions count. OLD and NEW are files, JSON or YAML, - for standard input, or
the rules in postgres://HOST/DATABASE. For recorded requests, see 'mete replay'.

Exit codes:
  0  no difference
  1  a difference
  2  wrong usage, or a policy cannot be read or has an error
  3  a database does not answer
`

func newDiffCommand(std Streams) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use: "diff [flags] OLD NEW", Short: "Explain the difference between two policies", Long: diffAbout, SuggestFor: []string{"compare"},
		ValidArgsFunction: cobra.FixedCompletions(policyExtensions, cobra.ShellCompDirectiveFilterFileExt),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usageError("two policies are required: OLD and NEW")
			}
			if args[0] == "-" && args[1] == "-" {
				return usageError("standard input is one policy: name a file for the other")
			}
			var policies [2]*policy.Matcher
			var errs []error
			for i, name := range args {
				var err error
				if policies[i], err = readPolicy(cmd.Context(), std, name); err != nil {
					errs = append(errs, err)
				}
			}
			if len(errs) > 0 {
				code := exitUsage
				if policyExit(errs[0]) == exitUnreachable {
					code = exitUnreachable
				}
				return failEach(code, errors.Join(errs...))
			}
			err := policydiff.Run(std.Out, policydiff.Options{
				Old: policies[0], New: policies[1], OldName: policyName(args[0]), NewName: policyName(args[1]), Now: time.Now(), JSON: format == "json",
			})
			if errors.Is(err, policydiff.ErrDifferent) {
				return exitWith(exitNo)
			}
			return err
		},
	}
	addFormat(cmd, &format, "text", "json")
	return cmd
}
