// SPDX-License-Identifier: Apache-2.0

// Command redis compares mete with rivals that keep their buckets in Redis. It starts the server and prints
// tables. See ../README.md.
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
	"github.com/metehq/mete/bench/subject/inredis"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "redis:", err)
		}
		stop()
		os.Exit(2)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("redis", flag.ContinueOnError)
	flags.SetOutput(stderr)
	srv := &server{}
	flags.StringVar(&srv.program, "server", "redis-server", "`program` to start as the server")
	c, err := contest.Parse(flags, args)
	if err != nil {
		return err
	}
	events := srv.events()
	cells, err := c.Cells(events)
	if err != nil {
		return err
	}
	if err := srv.start(ctx); err != nil {
		return err
	}
	defer srv.stop()
	results, err := c.Run(ctx, cells, srv.flush, stderr)
	if err != nil {
		return err
	}
	conditions := c.Conditions("Redis "+srv.version) + report.Modules(involved...)
	return contest.NewOutcome(conditions, events, results, []string{inredis.RedisRate}, targets).Write(stdout, c.JSON)
}

var involved = []string{
	"github.com/go-redis/redis_rate/v10",
	"github.com/redis/go-redis/v9",
	"github.com/redis/rueidis",
	"github.com/throttled/throttled/v2",
	"github.com/ulule/limiter/v3",
}
