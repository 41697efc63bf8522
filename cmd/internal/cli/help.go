// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/cmd/internal/display"
	"github.com/metehq/mete/cmd/internal/runbook"
	"github.com/metehq/mete/internal/spell"
)

// helpWidth is the line width of help texts, in characters.
const helpWidth = 80

func printHelp(cmd *cobra.Command, _ []string) {
	text := cmd.Long
	switch {
	case !cmd.HasParent():
		text = overview(cmd)
	case cmd.Runnable():
		text = commandHelp(cmd)
	}
	fmt.Fprint(cmd.OutOrStdout(), text)
}

func overview(root *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "mete: %s\n\nUsage: mete COMMAND [flags] [arguments]\n", root.Short)
	for _, g := range root.Groups() {
		fmt.Fprintf(&b, "\n%s:\n", g.Title)
		for _, c := range root.Commands() {
			if c.GroupID == g.ID && !c.Hidden {
				fmt.Fprintf(&b, "  %-10s %s\n", c.Name(), c.Short)
			}
		}
	}
	b.WriteString(root.Long)
	return b.String()
}

func commandHelp(cmd *cobra.Command) string {
	var b strings.Builder
	about := strings.TrimSpace(cmd.Long)
	if about == "" {
		about = cmd.Short + "."
	}
	fmt.Fprintf(&b, "Usage: %s\n\n%s\n", cmd.UseLine(), about)
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\nCommands:\n")
		for _, c := range cmd.Commands() {
			fmt.Fprintf(&b, "  %-8s %s\n", c.Name(), c.Short)
		}
	}
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	var connecting []string
	cmd.InitDefaultHelpFlag()
	add := func(f *pflag.Flag) {
		switch {
		case f.Name == "help" || f.Hidden || own.Lookup(f.Name) != nil:
		case f.Annotations[connectionFlag] == nil:
			own.AddFlag(f)
		case f.DefValue != "":
			connecting = append(connecting, "--"+f.Name+" (default "+f.DefValue+")")
		default:
			connecting = append(connecting, "--"+f.Name)
		}
	}
	cmd.LocalFlags().VisitAll(add)
	cmd.InheritedFlags().VisitAll(add)
	if flags := own.FlagUsagesWrapped(helpWidth); flags != "" {
		fmt.Fprintf(&b, "\nFlags:\n%s", flags)
	}
	if len(connecting) > 0 {
		text := "Connection flags, as 'mete help connection' describes them: " + strings.Join(connecting, ", ")
		fmt.Fprintf(&b, "\n%s\n", strings.Join(display.Wrap(text, helpWidth, "", ""), "\n"))
	}
	return b.String()
}

// newTopics returns the help topics that are not commands.
func newTopics() []*cobra.Command {
	return []*cobra.Command{
		{Use: "config", Short: "The configuration file with all settings and their defaults", Long: config.Sample},
		{Use: runbookTopic, Short: "What to do in an emergency, or about an ALERT", Long: runbookHelp()},
		{Use: "connection", Short: "How commands reach a server", Long: connectionHelp()},
	}
}

// runbookTopic takes an argument: the name of an alert or of a section.
const runbookTopic = "runbook"

// runbookHelp returns the introduction of the runbook and the names of its sections.
func runbookHelp() string {
	var b strings.Builder
	b.WriteString(runbook.Overview() + "\nAlerts, for 'mete help runbook ALERT':\n\n")
	for _, s := range runbook.Sections() {
		fmt.Fprintf(&b, "  %-18s %s\n", s.Name, strings.Join(s.Alerts, ", "))
	}
	return b.String()
}

func printRunbook(w io.Writer, words []string) error {
	name := strings.Join(words, " ")
	s, ok := runbook.Find(name)
	if !ok {
		if near := spell.Nearest(name, runbook.Names()); near != "" {
			return usageError("no alert %q in the runbook; did you mean %s?", name, near)
		}
		return usageError("no alert %q in the runbook: 'mete help runbook' lists them", name)
	}
	_, err := io.WriteString(w, s.Text)
	return err
}
