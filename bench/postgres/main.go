// SPDX-License-Identifier: Apache-2.0

// Command postgres compares mete with rivals that keep their buckets in PostgreSQL. It starts the server and
// prints tables. See ../README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/metehq/mete/bench/contest"
	"github.com/metehq/mete/bench/report"
	"github.com/metehq/mete/bench/subject/inpostgres"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "postgres:", err)
		}
		stop()
		os.Exit(2)
	}
}

// maxConnections leaves some of the 100 connections of a server with default settings.
const maxConnections = 90

var bases = []string{inpostgres.Classic, inpostgres.Single, flexibleName}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("postgres", flag.ContinueOnError)
	flags.SetOutput(stderr)
	srv := &server{}
	flags.StringVar(&srv.programs, "programs", "", "`directory` of initdb and postgres, if not on PATH nor where Debian has them")
	flags.StringVar(&srv.parent, "dir", "", "`directory` on the disk to measure; empty is that for temporary files")
	flags.IntVar(&srv.connections, "connections", 10, "`maximum` number of connections, for limiters that hold one during each take")
	c, err := contest.Parse(flags, args)
	if err != nil {
		return err
	}
	if srv.connections < 1 || srv.connections > maxConnections {
		return fmt.Errorf("-connections %d: must be from 1 to %d", srv.connections, maxConnections)
	}
	rival := &flexible{node: "node", npm: "npm"}
	defer rival.remove()
	events := srv.events(rival)
	cells, err := c.Cells(events)
	if err != nil {
		return err
	}
	if err := srv.start(ctx); err != nil {
		return err
	}
	defer srv.stop()
	results, err := c.Run(ctx, cells, srv.empty, stderr)
	if err != nil {
		return err
	}
	conditions := c.Conditions("PostgreSQL "+srv.version) + fmt.Sprintf("; at most %d connections", srv.connections) +
		report.Modules("github.com/jackc/pgx/v5") + rival.version
	return contest.NewOutcome(conditions, events, results, bases, targets).Write(stdout, c.JSON)
}
