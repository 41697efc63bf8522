// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/metehq/mete/policyyaml"
)

// unquoteUsages removes the quotes from the descriptions of all flags. In help they mark the
// name of a value, and a shell would show them.
func unquoteUsages(cmd *cobra.Command) {
	unquote := func(f *pflag.Flag) { f.Usage = strings.ReplaceAll(f.Usage, "`", "") }
	cmd.Flags().VisitAll(unquote)
	cmd.PersistentFlags().VisitAll(unquote)
	for _, c := range cmd.Commands() {
		unquoteUsages(c)
	}
}

// completeFiles completes arguments with files.
func completeFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

// completeAttributes completes the names of attributes, up to the value.
func completeAttributes(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"method=", "path=", "host=", "ip:address=", "header:", "query:", "cookie:", "jwt:"}, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}

// completeExplain completes a policy file first, and then attributes.
func completeExplain(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 && !cmd.Flags().Changed("policy") {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return completeAttributes(cmd, args, text)
}

// completeRules completes --rule with the names in the policy at hand: METE_POLICY,
// or policy.yaml, policy.yml or policy.json in the working directory.
func completeRules(cmd *cobra.Command) {
	must(cmd.RegisterFlagCompletionFunc("rule", func(*cobra.Command, []string, string) (found []string, _ cobra.ShellCompDirective) {
		for _, name := range []string{os.Getenv("METE_POLICY"), "policy.yaml", "policy.yml", "policy.json"} {
			data, err := policyyaml.Read(name)
			if err != nil {
				continue
			}
			if m, err := policyyaml.Parse(name, data, policyOptions()); err == nil {
				for _, r := range m.Rules() {
					found = append(found, r.Name)
				}
				break
			}
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}))
}
