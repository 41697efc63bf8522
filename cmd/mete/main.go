// SPDX-License-Identifier: Apache-2.0

// Mete runs a rate limiter as a server or gateway, and has tools for its policies. See 'mete help'.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // for calendar limits on systems without a time zone database

	"github.com/metehq/mete/cmd/internal/cli"
)

func main() { os.Exit(run()) }

// run returns the exit code of the command. The first signal stops the command gracefully, and the second one ends
// the process at once.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return cli.Main(ctx, cli.ArgsOf(os.Args), cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
}
