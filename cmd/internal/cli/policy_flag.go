// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/metehq/mete/cmd/internal/storeurl"
)

var policyExtensions = []string{"yaml", "yml", "json"}

// addPolicy defines --policy. The commands also accept a policy as an argument.
func addPolicy(cmd *cobra.Command, to *string, usage string) {
	cmd.Flags().StringVar(to, "policy", "", usage)
	completePolicy(cmd)
}

func completePolicy(cmd *cobra.Command) {
	must(cmd.RegisterFlagCompletionFunc("policy", cobra.FixedCompletions(policyExtensions, cobra.ShellCompDirectiveFilterFileExt)))
	if cmd.ValidArgsFunction == nil {
		cmd.ValidArgsFunction = cobra.FixedCompletions(policyExtensions, cobra.ShellCompDirectiveFilterFileExt)
	}
}

func addPolicyKeys(cmd *cobra.Command, to *[]string) {
	cmd.Flags().StringArrayVar(to, "policy-key", nil, "require a signature of each file by the public key in `FILE`; may be repeated")
}

// policyArgument removes the policy from the front of args unless --policy is set.
func policyArgument(policy *string, args []string) (rest []string) {
	if *policy != "" || len(args) == 0 {
		return args
	}
	*policy = args[0]
	return args[1:]
}

// namesPolicy reports whether an argument of explain is a policy. A path is a policy only if the file exists,
// because requests have paths, too.
func namesPolicy(arg string) bool {
	ext := strings.TrimPrefix(strings.ToLower(filepath.Ext(arg)), ".")
	switch {
	case arg == "-" || storeurl.IsPostgres(arg):
		return true
	case strings.ContainsAny(arg, " =?") || strings.Contains(arg, "://") || !slices.Contains(policyExtensions, ext):
		return false
	}
	_, err := os.Stat(arg)
	return err == nil || !strings.HasPrefix(arg, "/")
}

var errUnsigned = errors.New("only a file can have a signature: --policy-key excludes standard input and databases")
