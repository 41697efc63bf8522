// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/metehq/mete/internal/testseed"
)

var (
	runFor    = flag.Duration("history.time", 0, "run all worlds for this time, and count the histories in testdata/runs.tsv")
	onlyWorld = flag.String("history.world", "", "run only the world of this name")
	onlyFault = flag.String("history.fault", "", "run only the fault of this name")
	checkFile = flag.String("history.file", "", "check this saved history again")
)

const (
	// patience is the number of steps of a complete search, which takes a few seconds. Short tests have less.
	patience      = 100_000
	shortPatience = 8_000
)

// A tally counts the histories of a world, or of one of its faults.
type tally struct {
	histories, operations, failed, undecided, violations int
	took                                                 time.Duration
}

func (sum *tally) add(o tally) {
	sum.histories += o.histories
	sum.operations += o.operations
	sum.failed += o.failed
	sum.undecided += o.undecided
	sum.violations += o.violations
	sum.took += o.took
}

// worlds are the stores of all tests. The quick ones take a second or two.
var worlds = []struct {
	name  string
	start func(testing.TB) *world
	short int // histories of a short test
}{
	{"memory", func(t testing.TB) *world { return startMemory(t, false) }, 40},
	{"memory, stepped clock", func(t testing.TB) *world { return startMemory(t, true) }, 40},
	{"redis", func(t testing.TB) *world { return startRedis(t, false) }, 1},
	{"redis, AOF", func(t testing.TB) *world { return startRedis(t, true) }, 0},
	{"redis, sentinels", startSentinel, 0},
	{"redis, cluster", func(t testing.TB) *world { return startCluster(t, false) }, 0},
	{"redis, cluster, several slots", func(t testing.TB) *world { return startCluster(t, true) }, 0},
	{"postgres", func(t testing.TB) *world { return startPostgres(t, false) }, 0}, // the start alone takes seconds
	{"postgres, durable", func(t testing.TB) *world { return startPostgres(t, true) }, 0},
}

// A subject is a started world with the tallies of its faults.
type subject struct {
	*world
	short   int
	tallies []tally
}

// TestHistories records histories of all worlds and checks them. With METE_TEST_LONG or -history.time, it takes that time, and
// the worlds take turns.
func TestHistories(t *testing.T) {
	long, _ := time.ParseDuration(os.Getenv("METE_TEST_LONG"))
	if *runFor > 0 {
		long = *runFor
	}
	seed := testseed.PCG(1, 1).Uint64() >> 16
	if *runFor > 0 {
		seed ^= uint64(time.Now().Unix()) << 8 // each run has other histories
	}
	subjects := startSubjects(t, long > 0)
	began := time.Now()
	for n := 0; !t.Failed() && (n < 40 && long == 0 || time.Since(began) < long); n++ {
		for _, s := range subjects {
			times := 1
			if s.rounds && long > 0 { // a history in memory takes milliseconds
				times = 50
			}
			for range times {
				if !t.Failed() && (long > 0 || n < s.short) {
					s.next(t, seed, long > 0)
				}
			}
		}
	}
	for _, s := range subjects {
		t.Logf("%s: %+v", s.name, s.total())
		if s.total().histories == 0 {
			t.Errorf("%s: no history", s.name)
		}
		if long > 0 {
			s.judge(t)
		}
	}
	if *runFor > 0 && *onlyWorld == "" && *onlyFault == "" {
		logRuns(t, subjects)
	}
}

// startSubjects starts the worlds of a short or long test, or the one of the flag. It removes the faults that must not run.
func startSubjects(t *testing.T, long bool) (all []*subject) {
	var names, faults []string
	for _, w := range worlds {
		names = append(names, w.name)
		if *onlyWorld != "" && *onlyWorld != w.name || *onlyWorld == "" && !long && w.short == 0 {
			continue
		}
		s := &subject{world: w.start(t), short: max(w.short, 1)}
		if s.name = w.name; *onlyFault != "" {
			s.faults = slices.DeleteFunc(s.faults, func(f fault) bool {
				faults = append(faults, f.name)
				return f.name != *onlyFault
			})
		}
		if s.tallies = make([]tally, len(s.faults)); len(s.faults) > 0 {
			all = append(all, s)
		}
	}
	switch {
	case *onlyWorld != "" && !slices.Contains(names, *onlyWorld):
		t.Fatalf("-history.world=%s: the worlds are %q", *onlyWorld, names)
	case len(all) == 0:
		t.Fatalf("-history.fault=%s: the faults of the selected worlds are %q", *onlyFault, faults)
	}
	return all
}

func (s *subject) total() (sum tally) {
	for _, f := range s.tallies {
		sum.add(f)
	}
	return sum
}

// next records and checks a history. The faults take turns.
func (s *subject) next(t *testing.T, seed uint64, long bool) {
	n := s.total().histories
	i := n % len(s.faults)
	began := time.Now()
	h := perform(t, s.world, &s.faults[i], seed+uint64(n))
	sum := tally{histories: 1, operations: len(h.ops)}
	for _, o := range h.ops {
		if o.Answer.Err != "" && o.Answer.Err != errEnded {
			sum.failed++
		}
	}
	steps := shortPatience
	if long {
		steps = patience
	}
	switch h.check(steps) {
	case porcupine.Unknown:
		sum.undecided++
		t.Logf("%s, seed %d: undecided after %d steps: %s", h.Title, h.Seed, steps, saveNew(t, h))
	case porcupine.Illegal:
		sum.violations++
		report(t, h)
	}
	sum.took = time.Since(began)
	s.tallies[i].add(sum)
}

// judge reports faults that tested too little.
func (s *subject) judge(t *testing.T) {
	for i, f := range s.tallies {
		name := s.faults[i].name
		t.Logf("%s, %s: %+v", s.name, name, f)
		if f.histories >= 3 && f.undecided == f.histories {
			t.Errorf("%s, %s: none of %d histories is decided", s.name, name, f.histories)
		}
		if f.histories >= 20 && 5*f.undecided > f.histories {
			t.Errorf("%s, %s: %d of %d histories are undecided", s.name, name, f.undecided, f.histories)
		}
		if f.histories >= 5 && f.failed == 0 && s.faults[i].effect == breaking {
			t.Errorf("%s, %s: no call failed in %d histories", s.name, name, f.histories)
		}
	}
}

// saveNew saves a history in a new directory.
func saveNew(t *testing.T, h *history) (file string) {
	dir, err := os.MkdirTemp("", "history-")
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(dir, "history.jsonl")
	if err := h.save(file); err != nil {
		t.Error(err)
	}
	return file
}

// report saves a history that has no explanation, and a page that shows it.
func report(t *testing.T, h *history) {
	file := saveNew(t, h)
	page := strings.TrimSuffix(file, "jsonl") + "html"
	if err := h.unexplained(patience).draw(page, patience); err != nil {
		t.Error(err)
	}
	t.Errorf("%s, seed %d: no order of the operations explains their answers.\n%s\nthe history: %s\nto check it again: go test ./history -run TestRecheck -history.file=%s",
		h.Title, h.Seed, h.unexplained(patience).explain(patience), page, file)
}

// TestRecheck checks the history in a file: a saved one, or by default a new one.
func TestRecheck(t *testing.T) {
	file := *checkFile
	if file == "" {
		file = filepath.Join(t.TempDir(), "history.jsonl")
		if err := perform(t, startMemory(t, true), nil, 1).save(file); err != nil {
			t.Fatal(err)
		}
	}
	h, err := readHistory(file)
	if err != nil {
		t.Fatal(err)
	}
	if result := h.check(10 * patience); result != porcupine.Ok {
		t.Errorf("%s, seed %d: %v\n%s", h.Title, h.Seed, result, h.unexplained(10*patience).explain(10*patience))
	}
}

// logRuns adds a line per world to the file that counts the histories of all times.
func logRuns(t *testing.T, subjects []*subject) {
	path := filepath.Join("testdata", "runs.tsv")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.Write(text)
	for _, w := range subjects {
		s := w.total()
		fmt.Fprintf(&b, "%s\t%s\t%.1f\t%d\t%d\t%d\t%d\t%d\n", time.Now().UTC().Format(time.DateOnly), w.name, s.took.Minutes(),
			s.histories, s.operations, s.failed, s.undecided, s.violations)
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
