// SPDX-License-Identifier: Apache-2.0

package cli

import "github.com/spf13/cobra"

const completionAbout = `
Prints a script that has a shell complete commands, flags and values.

  bash        mete completion bash > /etc/bash_completion.d/mete
  zsh         mete completion zsh > "${fpath[1]}/_mete"
  fish        mete completion fish > ~/.config/fish/completions/mete.fish
  PowerShell  mete completion powershell | Out-String | Invoke-Expression

The script for bash needs the package bash-completion.
`

// newCompletionCommand returns "mete completion".
func newCompletionCommand(std Streams) *cobra.Command {
	return &cobra.Command{
		Use:       "completion SHELL",
		Short:     "Print a completion script for bash, zsh, fish or PowerShell",
		Long:      completionAbout,
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError("the name of one shell is required: %s", anyOf(cmd.ValidArgs))
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
			return usageError("unknown shell %q: it must be %s", args[0], anyOf(cmd.ValidArgs))
		},
	}
}
