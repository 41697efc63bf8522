// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/metehq/mete/internal/testseed"
)

var (
	runFor    = flag.Duration("history.time", 0, "run all worlds for this time, and count the histories in testdata/runs.tsv")
	onlyFault = flag.String("history.fault", "", "run only this fault")
	checkFile = flag.String("history.file", "", "check this saved history again")
)

const (
	// patience is the number of steps of a complete search, which takes a few seconds. Short tests have less.
	patience      = 100_000
	shortPatience = 8_000
)

// A tally counts the histories of a world.
type tally struct {
	histories, operations, failed, undecided, violations int
	took                                                 time.Duration
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
	tallies := make([]tally, len(worlds))
	started := make([]*world, len(worlds))
	for i, w := range worlds {
		if w.short > 0 || long > 0 {
			started[i] = w.start(t)
		}
	}
	began := time.Now()
	for n := 0; !t.Failed() && (n < 40 && long == 0 || time.Since(began) < long); n++ {
		for i, w := range started {
			if w == nil || long == 0 && n >= worlds[i].short {
				continue
			}
			times := 1
			if w.rounds && long > 0 { // a history in memory takes milliseconds
				times = 50
			}
			for range times {
				if sum := &tallies[i]; !t.Failed() {
					sum.add(t, w, seed+uint64(sum.histories), sum.histories, long > 0)
				}
			}
		}
	}
	for i := range tallies {
		t.Logf("%s: %+v", worlds[i].name, tallies[i])
	}
	if *runFor > 0 {
		logRuns(t, tallies)
	}
}

// add records and checks a history with one of the faults.
func (sum *tally) add(t *testing.T, w *world, seed uint64, n int, long bool) {
	f := &w.faults[n%len(w.faults)]
	if *onlyFault != "" && f.name != *onlyFault {
		return
	}
	began := time.Now()
	h := perform(t, w, f, seed)
	sum.histories++
	sum.operations += len(h.ops)
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
	case porcupine.Illegal:
		sum.violations++
		report(t, h)
	}
	sum.took += time.Since(began)
}

// report saves a history that has no explanation, and a page that shows it.
func report(t *testing.T, h *history) {
	dir, err := os.MkdirTemp("", "history-")
	if err != nil {
		t.Fatal(err)
	}
	file, page := filepath.Join(dir, "history.jsonl"), filepath.Join(dir, "history.html")
	if err := h.save(file); err != nil {
		t.Error(err)
	}
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
func logRuns(t *testing.T, tallies []tally) {
	path := filepath.Join("testdata", "runs.tsv")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.Write(text)
	for i, s := range tallies {
		fmt.Fprintf(&b, "%s\t%s\t%.1f\t%d\t%d\t%d\t%d\t%d\n", time.Now().UTC().Format(time.DateOnly), worlds[i].name, s.took.Minutes(),
			s.histories, s.operations, s.failed, s.undecided, s.violations)
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
