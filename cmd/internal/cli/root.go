// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"github.com/spf13/cobra"

	"github.com/metehq/mete/cmd/internal/buildinfo"
	"github.com/metehq/mete/cmd/internal/runbook"
)

const (
	groupRun      = "run"
	groupPolicies = "policies"
	groupLive     = "live"
	groupDatabase = "database"
	groupOther    = "other"
)

const rootAbout = `
Start with 'mete init'. 'mete help COMMAND' describes a command, and
'mete help config' the configuration file. 'mete help connection' describes the
flags to reach a server, and 'mete help runbook' the procedures in an emergency.
Exit codes: 0 yes, 1 no, 2 wrong usage, 3 unreachable, 4 refused.
`

func newRoot(std Streams) *cobra.Command {
	cobra.EnableCommandSorting = false
	root := &cobra.Command{
		Use:           "mete",
		Short:         "an exact rate limiter (server, gateway and tools)",
		Long:          rootAbout,
		Version:       versionLine(buildinfo.Read()),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs, // unknownCommand reports unknown commands
		RunE:          unknownCommand,
	}
	root.SetIn(std.In)
	root.SetOut(std.Out)
	root.SetErr(std.Err)
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetHelpFunc(printHelp)
	root.SetFlagErrorFunc(explainFlag)
	root.CompletionOptions.DisableDefaultCmd = true // newCompletionCommand replaces it

	add := func(id, title string, commands ...*cobra.Command) {
		root.AddGroup(&cobra.Group{ID: id, Title: title})
		for _, c := range commands {
			c.GroupID = id
			root.AddCommand(c)
		}
	}
	add(groupRun, "Run",
		newInitCommand(std),
		newServeCommand(std),
		newRatelimitCommand(std),
		newHealthCommand(std),
		newBenchCommand(std),
		newReloadCommand(std),
		newDashboardCommand(std),
	)
	add(groupPolicies, "Policies",
		newCheckCommand(std),
		newExplainCommand(std),
		newDiffCommand(std),
		newReplayCommand(std),
		newConvertCommand(std),
		newSignCommand(std),
	)
	add(groupLive, "Live",
		newTopCommand(std),
		newTakeCommand(std),
		newPeekCommand(std),
		newHoldCommand(std),
		newSettleCommand(std),
		newReleaseCommand(std),
		newRenewCommand(std),
		newSlotsCommand(std),
		newResetCommand(std),
		newRefundCommand(std),
		newOverrideCommand(std),
	)
	add(groupDatabase, "Database",
		newRulesCommand(std),
		newViolationsCommand(std),
	)
	add(groupOther, "Other",
		newCompletionCommand(std),
		newVersionCommand(std),
	)
	root.AddCommand(newTopics()...)
	root.AddCommand(newManCommand())
	root.SetHelpCommand(newHelpCommand())
	return root
}

func newHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "help [COMMAND | TOPIC]",
		Short:  "Describe a command or a topic",
		Hidden: true, // every help page mentions it
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			about, _, err := cmd.Root().Find(args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			if about.Name() == runbookTopic {
				return runbook.Names(), cobra.ShellCompDirectiveNoFileComp
			}
			var names []string
			for _, c := range about.Commands() {
				if !c.Hidden {
					names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err == nil && len(rest) > 0 && about.Name() == runbookTopic {
				return printRunbook(cmd.OutOrStdout(), rest)
			}
			if err == nil && len(rest) > 0 {
				return unknownCommand(about, rest)
			}
			if err != nil {
				return err
			}
			return about.Help()
		},
	}
}
