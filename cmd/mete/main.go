// SPDX-License-Identifier: Apache-2.0

// Mete is a rate limiter: a server, a gateway and the tools around it.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/metehq/mete/cmd/internal/cli"
)

func main() { os.Exit(run()) }

// run is main without its exit. The first signal asks the command to end; the
// second one ends the process, whatever it is doing.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return cli.Main(ctx, os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
}
