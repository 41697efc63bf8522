// SPDX-License-Identifier: Apache-2.0

// Package cli holds the commands of mete. Nothing below [Main] ends the
// process.
package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"
)

// Streams are the input and outputs of a command.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Main runs the command that args name and returns its exit code. It prints the
// error of the command, once.
func Main(ctx context.Context, args []string, std Streams) int {
	root := newRoot(std)
	root.SetArgs(append([]string{}, args...)) // cobra reads os.Args for nil
	if len(args) > 0 && args[0] == cobra.ShellCompRequestCmd {
		unquoteUsages(root)
	}
	cmd, err := root.ExecuteContextC(ctx)
	if cmd.Name() == "help" {
		cmd = root // the error is about the command that help describes
	}
	return report(std, cmd.CommandPath(), err)
}
