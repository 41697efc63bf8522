// SPDX-License-Identifier: Apache-2.0

// Command http measures mete's server over HTTP and compares it with minimal programs on net/http: the API, the
// reverse proxy, and the overhead behind nginx. It starts all servers and prints tables. See ../README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/metehq/mete/bench/contest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "http:", err)
		}
		stop()
		os.Exit(2)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("http", flag.ContinueOnError)
	flags.SetOutput(stderr)
	s := &stage{running: map[string]*server{}}
	flags.StringVar(&s.mete, "mete", "", "the `program` to measure; empty builds it")
	c, err := contest.Parse(flags, args)
	if err != nil {
		return err
	}
	if c.Time%time.Second != 0 {
		return fmt.Errorf("-time %v: must be a whole number of seconds, because wrk requires it", c.Time)
	}
	events := s.events()
	cells, err := c.Cells(events)
	if err != nil {
		return err
	}
	if err := s.open(ctx); err != nil {
		return err
	}
	defer s.close()
	results, err := c.Run(ctx, cells, func(context.Context) error { return nil }, stderr)
	if err != nil {
		return err
	}
	results = append(results, recordedResults(results)...)
	return contest.NewOutcome(c.Conditions("clients and servers"), events, results, nil, targets).Write(stdout, c.JSON)
}
