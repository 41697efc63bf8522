// SPDX-License-Identifier: Apache-2.0

// Command resp measures CL.THROTTLE of mete with redis-benchmark, and compares it with Redis and with a command that
// decides nothing. It also measures idle connections. It starts the servers and prints tables. See ../README.md.
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

	"github.com/metehq/mete/bench/report"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "resp:", err)
		}
		stop()
		os.Exit(2)
	}
}

type config struct {
	rounds, requests, clients, idle int
	json                            bool
}

func parse(args []string, stderr io.Writer) (config, error) {
	var c config
	flags := flag.NewFlagSet("resp", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&c.rounds, "rounds", 7, "`rounds`; each measures every subject once")
	flags.IntVar(&c.requests, "requests", 200_000, "`requests` of a measurement; a pipeline of 16 sends five times as many")
	flags.IntVar(&c.clients, "clients", 50, "`connections` of redis-benchmark")
	flags.IntVar(&c.idle, "idle", 10_000, "idle `connections`; 0 omits their measurement")
	flags.BoolVar(&c.json, "json", false, "print JSON instead of tables")
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	switch {
	case c.rounds < 1 || c.requests < 1 || c.clients < 1:
		return c, errors.New("-rounds, -requests and -clients must be at least 1")
	case c.idle < 0 || c.idle > maxIdle:
		return c, fmt.Errorf("-idle %d: must be between 0 and %d", c.idle, maxIdle)
	case flags.NArg() > 0:
		return c, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return c, nil
}

// maxIdle leaves places for redis-benchmark within the bound of the server.
const maxIdle = 19_000

// A result has the figures of one subject and one length of pipelines.
type result struct {
	Subject  string       `json:"subject"`
	Pipeline int          `json:"pipeline"`
	Rate     *report.Stat `json:"requests_per_second"`
	P99      *report.Stat `json:"p99_ms"`
	Ratio    *report.Stat `json:"mete_ratio"` // the rate of mete / this one, in the same round
	Target   float64      `json:"target,omitempty"`
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	c, err := parse(args, stderr)
	if err != nil {
		return err
	}
	s := &servers{}
	defer s.stop()
	if err := s.start(ctx); err != nil {
		return err
	}
	results, err := c.compare(ctx, s, stderr)
	if err != nil {
		return err
	}
	var idle *idleResult
	if c.idle > 0 {
		if idle, err = c.measureIdle(ctx, s, stderr); err != nil {
			return err
		}
	}
	if c.json {
		return json.NewEncoder(stdout).Encode(map[string]any{"results": results, "idle": idle})
	}
	fmt.Fprintf(stdout, "%s, redis-benchmark -c %d, median of %d rounds\n\n", conditions(s), c.clients, c.rounds)
	writeResults(stdout, results)
	if idle != nil {
		fmt.Fprintln(stdout)
		idle.write(stdout)
	}
	return nil
}

func writeResults(w io.Writer, results []result) {
	table := report.Table{{"subject", "-P", "requests/s", "p99", "mete ÷ this", "target"}}
	for _, r := range results {
		ratio, target := "", ""
		if r.Ratio != nil {
			ratio = fmt.Sprintf("%.2f", r.Ratio.Median)
		}
		if r.Target > 0 {
			target = fmt.Sprintf("≥ %.1f", r.Target)
		}
		table.Add(r.Subject, fmt.Sprint(r.Pipeline), r.Rate.String(), fmt.Sprintf("%.2f ms", r.P99.Median), ratio, target)
	}
	table.Write(w)
}
