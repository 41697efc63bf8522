// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policyyaml"
)

const completionAbout = `
Prints a script that lets a shell complete commands, flags and values.

  bash        mete completion bash > /etc/bash_completion.d/mete
  zsh         mete completion zsh > "${fpath[1]}/_mete"
  fish        mete completion fish > ~/.config/fish/completions/mete.fish
  PowerShell  mete completion powershell | Out-String | Invoke-Expression

The script for bash needs the package bash-completion.
`

func newCompletionCommand(std Streams) *cobra.Command {
	return &cobra.Command{
		Use:       "completion SHELL",
		Short:     "Print a completion script for bash, zsh, fish or PowerShell",
		Long:      completionAbout,
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError("the name of one shell is required: %s", joinWords(cmd.ValidArgs))
			}
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(std.Out, true)
			case "zsh":
				return root.GenZshCompletion(std.Out)
			case "fish":
				return root.GenFishCompletion(std.Out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(std.Out)
			}
			return usageError("unknown shell %q: it must be %s", args[0], joinWords(cmd.ValidArgs))
		},
	}
}

// unquoteUsages removes the backquotes from all flag descriptions. They mark the name of a value in help texts,
// and a shell would print them.
func unquoteUsages(cmd *cobra.Command) {
	unquote := func(f *pflag.Flag) { f.Usage = strings.ReplaceAll(f.Usage, "`", "") }
	cmd.Flags().VisitAll(unquote)
	cmd.PersistentFlags().VisitAll(unquote)
	for _, c := range cmd.Commands() {
		unquoteUsages(c)
	}
}

func completeFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

// completeAttributes completes the names of attributes, without values.
func completeAttributes(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"method=", "path=", "host=", "ip:address=", "header:", "query:", "cookie:", "jwt:"}, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}

func completeExplain(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 && !cmd.Flags().Changed("policy") {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return completeAttributes(cmd, args, text)
}

// completeRules completes --rule with the rule names in the local policy: METE_POLICY, or policy.yaml, policy.yml
// or policy.json in the working directory.
func completeRules(cmd *cobra.Command) {
	must(cmd.RegisterFlagCompletionFunc("rule", func(*cobra.Command, []string, string) (found []string, _ cobra.ShellCompDirective) {
		for _, name := range []string{os.Getenv("METE_POLICY"), "policy.yaml", "policy.yml", "policy.json"} {
			data, err := policyyaml.Read(name)
			if err != nil {
				continue
			}
			if m, err := policyyaml.Parse(name, data, policy.Options{HashKey: []byte(fixedHashKey), Prices: policyyaml.PricesBeside(name)}); err == nil {
				for _, r := range m.Rules() {
					found = append(found, r.Name)
				}
				break
			}
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}))
}
