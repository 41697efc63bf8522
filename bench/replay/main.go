// SPDX-License-Identifier: Apache-2.0

// Command replay measures how many lines of an access log per second mete replay decides, and compares it
// with programs that only read the lines. See ../README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"

	"github.com/metehq/mete/bench/report"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "replay:", err)
		}
		stop()
		os.Exit(2)
	}
}

// target is the number of lines per second that mete must replay on one core.
const target = 500_000

type config struct {
	lines, rounds int
	mete, dir     string
}

func parse(args []string, stderr io.Writer) (c config, err error) {
	flags := flag.NewFlagSet("replay", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&c.lines, "lines", 2_000_000, "`lines` of the log, 208 bytes each")
	flags.IntVar(&c.rounds, "rounds", 5, "`rounds` to take the median of")
	flags.StringVar(&c.mete, "mete", "", "the `program` to measure; empty builds it")
	flags.StringVar(&c.dir, "dir", "", "`directory` to make the log in; empty is that for temporary files")
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	switch {
	case flags.NArg() > 0:
		return c, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case c.lines < 1:
		return c, fmt.Errorf("-lines %d: must be at least 1", c.lines)
	case c.rounds < 1:
		return c, fmt.Errorf("-rounds %d: must be at least 1", c.rounds)
	}
	return c, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	c, err := parse(args, stderr)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(c.dir, "mete-bench-replay-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if c.mete == "" {
		if c.mete, err = build(ctx, dir); err != nil {
			return err
		}
	}
	log, err := makeLog(dir, c.lines)
	if err != nil {
		return err
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // for the scans in this process
	subjects, absent := subjects(c, log)
	results, err := measure(ctx, subjects, c.rounds, stderr)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s %s/%s, %d lines, %.0f MB, %d rounds\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH,
		c.lines, float64(log.size)/1e6, c.rounds)
	write(stdout, results, c.lines)
	for _, note := range absent {
		fmt.Fprintln(stdout, note)
	}
	return nil
}

// write writes the table. The first result is the one with the target.
func write(w io.Writer, results []result, lines int) {
	table := report.Table{{"", "lines a second", "seconds", "CPU seconds", "times as long"}}
	first := results[0].wall.Median
	for _, r := range results {
		cpu := "-"
		if r.cpu != nil {
			cpu = fmt.Sprintf("%.2f", r.cpu.Median)
		}
		table.Add(r.name, fmt.Sprintf("%.0f", float64(lines)/r.wall.Median), seconds(r.wall), cpu, fmt.Sprintf("%.2f", r.wall.Median/first))
	}
	table.Write(w)
	verdict := "met"
	if float64(lines)/first < target {
		verdict = "missed"
	}
	fmt.Fprintf(w, "\nTarget: %s at %d lines per second or more: %s.\n", results[0].name, target, verdict)
}

func seconds(s *report.Stat) string {
	return fmt.Sprintf("%.2f [%.2f–%.2f]", s.Median, s.Min, s.Max)
}
