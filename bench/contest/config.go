// SPDX-License-Identifier: Apache-2.0

// Package contest compares limiters that keep their buckets on a server. The limiters take turns in one run.
// The package prints the figures and the targets.
package contest

import (
	"flag"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A Config holds the flags.
type Config struct {
	Rounds  int
	Time    time.Duration
	Callers []int
	Only    *regexp.Regexp // matches "scenario/callers/entrant"
	JSON    bool
}

const (
	// maxTime keeps a hot key below its capacity, even if it is leased: see [subject.Allow].
	maxTime = 10 * time.Second

	// maxCallers is the number of connections that fit into the usual limit of open files of a server.
	maxCallers = 1000
)

// Parse adds the common flags of all contests to the flags of a command, and parses args.
func Parse(flags *flag.FlagSet, args []string) (Config, error) {
	var c Config
	flags.IntVar(&c.Rounds, "rounds", 3, "`rounds` to take the median of")
	flags.DurationVar(&c.Time, "time", time.Second, "how long to measure one cell in one round")
	callers := flags.String("callers", "1,16,64,256", "numbers of concurrent callers")
	only := flags.String("only", "", "measure only where scenario/callers/subject matches this `regexp`")
	flags.BoolVar(&c.JSON, "json", false, "print JSON")
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	for text := range strings.SplitSeq(*callers, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxCallers {
			return c, fmt.Errorf("-callers %q: must be numbers from 1 to %d, with commas between", *callers, maxCallers)
		}
		c.Callers = append(c.Callers, n)
	}
	var err error
	switch c.Only, err = regexp.Compile(*only); {
	case err != nil:
		return c, fmt.Errorf("-only: %w", err)
	case c.Rounds < 1:
		return c, fmt.Errorf("-rounds %d: must be at least 1", c.Rounds)
	case c.Time <= 0 || c.Time > maxTime:
		return c, fmt.Errorf("-time %v: must be above 0 and at most %v", c.Time, maxTime)
	case flags.NArg() > 0:
		return c, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return c, nil
}
