// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/metehq/mete/internal/testseed"
)

var (
	runFor   = flag.Duration("simulation.time", 0, "run for this time, from the first seed that the log does not have")
	oneSeed  = flag.Uint64("simulation.seed", 0, "run only this seed")
	first    = flag.Uint64("simulation.first", 0, "begin with this seed, with -simulation.runs")
	runs     = flag.Int("simulation.runs", 0, "run this number of seeds")
	oneWorld = flag.String("simulation.world", "", "run only seeds of this world, with -simulation.runs")
	find     = flag.String("simulation.find", "", "ignore faults without this text")
	maxSteps = flag.Int("simulation.steps", 250, "steps of a run")
)

// shortRuns are the runs of a short test: about a second.
const shortRuns = 100

// A campaign runs seeds one after another, on all processors.
type campaign struct {
	*testing.T

	mu         sync.Mutex // guards the fields below
	next       uint64
	runs       int
	operations int
	sum        tally
	failed     []uint64 // seeds
}

func TestSimulation(t *testing.T) {
	if *oneSeed != 0 {
		(&campaign{T: t}).run(t, *oneSeed)
		return
	}
	began := time.Now()
	c := &campaign{T: t, next: testseed.PCG(0, 0).Uint64() >> 32}
	more := func() bool { return c.runs < shortRuns }
	var log *runLog
	if *oneWorld != "" && (*runs == 0 || !slices.Contains(worldNames[:], *oneWorld)) {
		t.Fatalf("-simulation.world=%s: want -simulation.runs, and one of the worlds %q", *oneWorld, worldNames)
	}
	if *runs > 0 {
		c.next = *first
		more = func() bool { return c.runs < *runs }
	}
	if *runFor > 0 {
		log = readLog(t)
		c.next = log.next
		more = func() bool { return time.Since(began) < *runFor }
	}
	begin := c.next
	t.Run("all", func(t *testing.T) {
		for worker := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint(worker), func(t *testing.T) {
				t.Parallel()
				for seed := range c.seeds(more) {
					c.run(t, seed)
				}
			})
		}
	})
	took := time.Since(began)
	t.Logf("seeds %d to %d, %d operations in %v: %.1f million a minute", begin, c.next-1, c.operations, took.Round(time.Millisecond), float64(c.operations)/1e6/took.Minutes())
	c.sum.log(t)
	if log != nil {
		log.append(t, begin, c, took)
	}
}

// seeds yields seeds while more returns true and no run has failed.
func (c *campaign) seeds(more func() bool) func(func(uint64) bool) {
	return func(yield func(uint64) bool) {
		for {
			c.mu.Lock()
			if len(c.failed) > 0 || !more() {
				c.mu.Unlock()
				return
			}
			for *oneWorld != "" && worldNames[newSchedule(c.next, 0).world] != *oneWorld {
				c.next++
			}
			seed := c.next
			c.next++
			c.runs++
			if c.runs%10_000 == 0 {
				fmt.Fprintf(os.Stderr, "simulation: %d runs, %d operations\n", c.runs, c.operations)
			}
			c.mu.Unlock()
			if !yield(seed) {
				return
			}
		}
	}
}

// run runs one seed. It shrinks a failure, and reports it.
func (c *campaign) run(t *testing.T, seed uint64) {
	plan := newSchedule(seed, *maxSteps)
	out := simulate(t, plan, options{})
	c.mu.Lock()
	c.operations += out.operations
	c.sum.add(plan.world, &out)
	if out.hasFault() {
		c.failed = append(c.failed, seed)
	}
	c.mu.Unlock()
	if !out.hasFault() {
		return
	}
	fails := func(p *schedule) bool {
		out := simulate(t, p, options{})
		return out.hasFault()
	}
	small := plan.shrink(fails, time.Now().Add(time.Minute))
	again := simulate(t, small, options{verbose: true})
	t.Errorf("seed %d: %s\nshrunk to %v\n%s\n%s\nto repeat it: go test ./simulation -run '^TestSimulation$' -simulation.seed=%d",
		seed, strings.Join(out.faults, "\n"), small, strings.Join(again.faults, "\n"), strings.Join(again.log, "\n"), seed)
}

// hasFault reports whether a run found a fault with the text of -simulation.find.
func (o *outcome) hasFault() bool {
	return slices.ContainsFunc(o.faults, func(fault string) bool { return strings.Contains(fault, *find) })
}

// A seed decides the schedule: two runs agree in each message and each answer. There is one exception. Takes that wait for
// the same charge of local costs continue together, and Go decides which one is first.
func TestSimulation_IsRepeatable(t *testing.T) {
	for seed := uint64(1); seed <= 40; seed++ {
		plan := newSchedule(seed, *maxSteps)
		runs := 2
		if plan.world.isOutage() {
			runs = 20
		}
		agree, traces := false, map[uint64]outcome{}
		for ; runs > 0 && !agree; runs-- {
			out := simulate(t, plan, options{})
			_, agree = traces[out.trace]
			traces[out.trace] = out
		}
		if !agree {
			t.Errorf("seed %d, world %s: no two runs agree: %v", seed, worldNames[plan.world], traces)
		}
	}
}

// runLog is the file that counts the runs of all times.
type runLog struct {
	path  string
	lines []string
	next  uint64 // the first seed that was never run
}

func readLog(t *testing.T) *runLog {
	l := &runLog{path: filepath.Join("testdata", "runs.tsv"), next: 1 << 40} // far from the seeds of short tests
	text, err := os.ReadFile(l.path)
	if err != nil {
		t.Fatal(err)
	}
	l.lines = strings.Split(strings.TrimSpace(string(text)), "\n")
	for _, line := range l.lines[1:] {
		var date string
		var first, last uint64
		if _, err := fmt.Sscanf(line, "%s\t%d\t%d", &date, &first, &last); err != nil {
			t.Fatalf("%s: line %q: %v", l.path, line, err)
		}
		l.next = max(l.next, last+1)
	}
	return l
}

// append adds a line with the seeds that have failed, so that a later reader can repeat them.
func (l *runLog) append(t *testing.T, first uint64, c *campaign, took time.Duration) {
	failed := "-"
	if len(c.failed) > 0 {
		failed = strings.Trim(fmt.Sprint(c.failed), "[]")
	}
	l.lines = append(l.lines, fmt.Sprintf("%s\t%d\t%d\t%d\t%.1f\t%d\t%s", time.Now().UTC().Format(time.DateOnly), first, c.next-1, c.operations, took.Minutes(), len(c.failed), failed))
	if err := os.WriteFile(l.path, []byte(strings.Join(l.lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}
