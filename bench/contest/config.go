// SPDX-License-Identifier: Apache-2.0

// Package contest has limiters that keep their buckets on a server take turns
// in one run, and prints what came of it beside what was promised.
package contest

import (
	"flag"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A Config is what the flags say.
type Config struct {
	Rounds  int
	Time    time.Duration
	Callers []int
	Only    *regexp.Regexp // of "scenario/callers/entrant"
	JSON    bool
}

const (
	// maxTime keeps a hot key below its capacity, also where it is leased: see
	// [subject.Allow].
	maxTime = 10 * time.Second

	// maxCallers is what a server with its usual limit of open files can have
	// connections for.
	maxCallers = 1000
)

// Parse adds the flags of every contest to those of a command, and parses args.
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
