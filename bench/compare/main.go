// SPDX-License-Identifier: Apache-2.0

// Command compare measures mete's in-memory store and its rivals in one run, and prints a table. See ../README.md.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"time"

	"github.com/metehq/mete/bench/report"
	"github.com/metehq/mete/bench/subject"
	"github.com/metehq/mete/bench/workload"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "compare:", err)
		}
		os.Exit(2)
	}
}

type config struct {
	rounds int
	time   time.Duration
	only   *regexp.Regexp // matches "scenario/subject"
	json   bool
	pause  bool
}

// maxTime keeps a hot key below its capacity: see [subject.Allow].
const maxTime = 3 * time.Second

func run(args []string, stdout, stderr io.Writer) error {
	c, err := parse(args, stderr)
	if err != nil {
		return err
	}
	if c.pause {
		return pause(stdout, stderr)
	}
	results, err := compare(c, stderr)
	if err != nil {
		return err
	}
	if len(results) == 0 {
		return fmt.Errorf("-only %q matches no scenario/subject", c.only)
	}
	verdicts := judge(results)
	if c.json {
		return json.NewEncoder(stdout).Encode(map[string]any{
			"conditions": conditions(c), "results": results, "targets": verdicts,
		})
	}
	fmt.Fprintln(stdout, conditions(c))
	for _, sc := range scenarios {
		writeScenario(stdout, sc, results)
	}
	writeVerdicts(stdout, verdicts)
	return nil
}

func parse(args []string, stderr io.Writer) (config, error) {
	var c config
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&c.rounds, "rounds", 6, "`rounds` to take the median of")
	flags.DurationVar(&c.time, "time", 150*time.Millisecond, "how long to measure one figure in one round")
	only := flags.String("only", "", "measure only where scenario/subject matches this `regexp`")
	flags.BoolVar(&c.json, "json", false, "print JSON")
	flags.BoolVar(&c.pause, "pause", false, "print the longest calls while mete's store fills, and nothing else")
	if err := flags.Parse(args); err != nil {
		return c, err
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

// compare measures the scenarios and subjects of c. Rounds are the outer loop of a scenario. Each
// starts with another subject: drift of the machine affects all subjects alike.
func compare(c config, progress io.Writer) ([]result, error) {
	var results []result
	for _, sc := range scenarios {
		subjects := make([]subject.Subject, 0, len(subject.All))
		for _, s := range subject.All {
			if c.only.MatchString(sc.name + "/" + s.Name) {
				subjects = append(subjects, s)
			}
		}
		if len(subjects) == 0 {
			continue
		}
		generate, rounds := sc.calls, c.rounds
		if generate == nil {
			generate = func() workload.Keys { return workload.Each(sc.keys) }
		}
		if sc.kind == memory {
			rounds = 1 // memory does not vary
		}
		calls, samples := generate(), map[string][]sample{}
		for round := range rounds {
			fmt.Fprintf(progress, "%s: round %d of %d\n", sc.name, round+1, rounds)
			for i := range subjects {
				s := subjects[(i+round)%len(subjects)]
				got, err := measure(sc, s, calls, c.time)
				if err != nil {
					return nil, fmt.Errorf("%s: %s: %w", sc.name, s.Name, err)
				}
				samples[s.Name] = append(samples[s.Name], got)
			}
		}
		for _, s := range subjects {
			results = append(results, summarize(sc, s.Name, samples[s.Name]))
		}
	}
	return results, nil
}

func conditions(c config) string {
	text := fmt.Sprintf("%s, %s/%s, %d CPUs; median of %d × %v (churn: of %d × 1,000,000 calls); serial: 1 processor, parallel: %d",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), c.rounds, c.time, c.rounds, procs)
	return text + report.Modules(rivals...)
}

var rivals = []string{
	"github.com/go-chi/httprate",
	"github.com/sethvargo/go-limiter",
	"github.com/throttled/throttled/v2",
	"github.com/ulule/limiter/v3",
	"golang.org/x/time",
}
