// SPDX-License-Identifier: Apache-2.0

// Package cli implements the commands of mete. [Main] runs one command and returns its exit code. Nothing in this
// package ends the process.
package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"
)

type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Main runs the command that args name and returns its exit code. It prints the error of the command once.
func Main(ctx context.Context, args []string, std Streams) int {
	root := newRoot(std)
	root.SetArgs(append([]string{}, args...)) // with nil, cobra would read os.Args
	if len(args) > 0 && args[0] == cobra.ShellCompRequestCmd {
		unquoteUsages(root)
	}
	cmd, err := root.ExecuteContextC(ctx)
	if cmd.Name() == "help" {
		cmd = root // an unknown command is an error of mete itself
	}
	return report(std, cmd.CommandPath(), err)
}
