// SPDX-License-Identifier: Apache-2.0

// Command redis measures mete with its buckets in Redis and its rivals side by
// side, against a server that it starts itself, and prints tables. See
// ../README.md.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"time"
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

// A config is what the flags say.
type config struct {
	rounds  int
	time    time.Duration
	callers []int
	only    *regexp.Regexp // of "scenario/callers/subject"
	json    bool
	server  string // program
}

const (
	// maxTime keeps a hot key below its capacity, also where it is leased: see
	// [subject.Allow].
	maxTime = 10 * time.Second

	// maxCallers is what a server with its usual limit of open files can have
	// connections for.
	maxCallers = 1000
)

// errIncomplete says that rows are missing below the tables that lack them.
var errIncomplete = errors.New("limiters failed: their rows are left out")

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	c, err := parse(args, stderr)
	if err != nil {
		return err
	}
	cells := c.cells()
	if len(cells) == 0 {
		return fmt.Errorf("-only %q matches no scenario/callers/subject", c.only)
	}
	srv, err := startServer(ctx, c.server)
	if err != nil {
		return err
	}
	defer srv.stop()
	results, err := compare(ctx, srv, c, cells, stderr)
	if err != nil {
		return err
	}
	verdicts := judge(results)
	if c.json {
		if err := json.NewEncoder(stdout).Encode(map[string]any{
			"conditions": conditions(c, srv), "results": results, "targets": verdicts,
		}); err != nil {
			return err
		}
	} else {
		fmt.Fprintln(stdout, conditions(c, srv))
		for _, sc := range scenarios {
			writeScenario(stdout, sc, results)
		}
		writeVerdicts(stdout, verdicts)
	}
	for _, r := range results {
		if r.Failed != "" {
			return errIncomplete
		}
	}
	return nil
}

func parse(args []string, stderr io.Writer) (config, error) {
	var c config
	flags := flag.NewFlagSet("redis", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&c.rounds, "rounds", 3, "`rounds` to take the median of")
	flags.DurationVar(&c.time, "time", time.Second, "how long to measure one cell in one round")
	callers := flags.String("callers", "1,16,64,256", "numbers of concurrent callers")
	only := flags.String("only", "", "measure only where scenario/callers/subject matches this `regexp`")
	flags.BoolVar(&c.json, "json", false, "print JSON")
	flags.StringVar(&c.server, "server", "redis-server", "`program` to start as the server")
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	for text := range strings.SplitSeq(*callers, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxCallers {
			return c, fmt.Errorf("-callers %q: must be numbers from 1 to %d, with commas between", *callers, maxCallers)
		}
		c.callers = append(c.callers, n)
	}
	var err error
	switch c.only, err = regexp.Compile(*only); {
	case err != nil:
		return c, fmt.Errorf("-only: %w", err)
	case c.rounds < 1:
		return c, fmt.Errorf("-rounds %d: must be at least 1", c.rounds)
	case c.time <= 0 || c.time > maxTime:
		return c, fmt.Errorf("-time %v: must be above 0 and at most %v", c.time, maxTime)
	case flags.NArg() > 0:
		return c, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return c, nil
}
