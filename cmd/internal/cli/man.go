// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/metehq/mete/cmd/internal/buildinfo"
)

// newManCommand returns "mete man", which package builds use.
func newManCommand() *cobra.Command {
	return &cobra.Command{
		Use: "man DIRECTORY", Short: "Write manual pages", Hidden: true,
		Long: "Writes a manual page for each command to a directory: mete.1, mete-serve.1.\n" +
			"SOURCE_DATE_EPOCH sets their date.\n",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError("one directory is required")
			}
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fail(exitUsage, err)
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true
			markDown(root)
			header := &doc.GenManHeader{Section: "1", Source: "mete " + buildinfo.Read().Version, Manual: "mete"}
			if err := doc.GenManTree(root, header, args[0]); err != nil {
				return fail(exitUsage, err)
			}
			return nil
		},
	}
}

// markDown converts the help texts to Markdown for package doc, which turns indented lines into code.
func markDown(cmd *cobra.Command) {
	var b strings.Builder
	indented := false
	for line := range strings.Lines(strings.TrimSpace(cmd.Long) + "\n") {
		now := strings.HasPrefix(line, " ")
		if now != indented && line != "\n" {
			b.WriteString("\n")
		}
		if now {
			line = "    " + line
		} else {
			line = strings.NewReplacer("*", `\*`, "_", `\_`, "<", `\<`, "[", `\[`, "~", `\~`).Replace(line)
		}
		indented = now || indented && line == "\n"
		b.WriteString(line)
	}
	cmd.Long = b.String()
	for _, c := range cmd.Commands() {
		markDown(c)
	}
}
