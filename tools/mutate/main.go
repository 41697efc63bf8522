// SPDX-License-Identifier: Apache-2.0

// Mutate measures the tests: it makes small changes in the code that decides, and reports each change that no test
// detects. Such a mutant survives. Either a test is missing, or the change alters nothing that a caller can observe.
//
// Each mutant has one of these changes:
//   - another boundary of a comparison (< and <=), or == and != exchanged
//   - a negated condition, or && and || exchanged
//   - + and -, * and /, or min and max exchanged
//   - another number, or true and false exchanged
//   - in Go, an assignment or a call removed
//
// Comments and strings stay. The file targets.go lists the code with the tests that must detect its mutants. It is Go
// code, the Lua scripts of redisstore and the SQL functions of pgstore.
//
// The program never changes a file of the repository. It builds the tests of a package once, with go test -c -overlay. Each
// changed function has a copy for each of its mutants in this build, and scripts are read when the tests run. An
// environment variable selects the mutant. A mutant outside of functions, such as another constant, has its own build. A
// mutant that does not compile does not count.
//
// The tests run in steps until one fails: quick tests first. If a mutant runs much longer than the original, it has
// timed out, and counts as detected. Each mutant gets new servers, because a changed script can leave a server in a
// loop. A server starts faster than the tests of a mutant run.
//
// The file survivors.tsv lists the known survivors, each with a reason that starts with "equivalent: " or "not tested: ".
// A survivor without a reason makes the command fail. The name of a mutant consists of its file, its function and its
// changed line. The list thus stays valid when lines move.
//
// Each run with the same seed draws the same sample. A change of the code only exchanges the mutants of the changed lines.
// Two runs of the same code thus have the same result. The default seed is 1, and -seed 0 selects a random one.
//
//	go run ./tools/mutate                              a sample of 100 mutants
//	go run ./tools/mutate -seed 0                      another sample
//	go run ./tools/mutate -sample 20 -files 'bucket/*'
//	go run ./tools/mutate -all -match 'Row.Due:'         all mutants of a function
//	go run ./tools/mutate -all -report /tmp/report.tsv
//
// No library does this for Lua and SQL. For Go, gremlins is alive, but it edits a copy of one module and builds each
// mutant. It supports neither workspaces nor overlays, and names a mutant by its line. The forks of go-mutesting edit
// the source in place.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

const survivorsFile = "tools/mutate/survivors.tsv"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status, err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(2)
	}
	os.Exit(status)
}

// run returns 1 if a mutant survives without a reason, or if a listed survivor does not exist.
func run(ctx context.Context, args []string, output io.Writer) (status int, err error) {
	flags := flag.NewFlagSet("mutate", flag.ExitOnError)
	files := flags.String("files", "", "change only files that match a `pattern`, such as bucket/*.go; commas separate patterns")
	match := flags.String("match", "", "select mutants by a regular `expression` of their names: see -list")
	number := flags.Int("sample", 100, "test this `number` of random mutants")
	seed := flags.Uint64("seed", 1, "draw the sample with this `seed`; 0 selects another one each time")
	all := flags.Bool("all", false, "test all mutants")
	parallel := flags.Int("parallel", 2, "test this `number` of mutants at once")
	list := flags.Bool("list", false, "print the selected mutants, and test none")
	reportFile := flags.String("report", "", "write the outcome of each mutant to a `file`")
	_ = flags.Parse(args)
	if flags.NArg() > 0 || *number < 1 || *parallel < 1 {
		return 0, errors.New("-sample and -parallel must be at least 1, and arguments are not used: see -help")
	}
	root, err := filepath.Abs(".")
	if err != nil {
		return 0, err
	}
	if _, err := os.Stat("go.work"); err != nil {
		return 0, errors.New("run mutate at the root of the repository")
	}
	jobs, err := findJobs(root, targets)
	if err != nil {
		return 0, err
	}
	known, err := readSurvivors(survivorsFile)
	if err != nil {
		return 0, err
	}
	stale := known.findStale(jobs)
	if jobs, err = selectFiles(jobs, *files); err != nil {
		return 0, err
	}
	if jobs, err = matchNames(jobs, *match); err != nil {
		return 0, err
	}
	total := len(jobs)
	if !*all {
		if *seed == 0 {
			*seed = rand.Uint64N(1_000_000) + 1
		}
		jobs = sample(jobs, *number, *seed)
		fmt.Fprintf(output, "mutate: %d of %d mutants; -seed %d repeats this sample\n", len(jobs), total, *seed)
	}
	if *list {
		for _, j := range jobs {
			fmt.Fprintln(output, j.name())
		}
		return 0, nil
	}
	r, err := newReport(output, *reportFile, len(jobs), *parallel)
	if err != nil {
		return 0, err
	}
	started := time.Now()
	if err := testAll(ctx, root, jobs, *parallel, r); err != nil {
		return 0, errors.Join(err, r.close())
	}
	fmt.Fprintf(output, "mutate: %d mutants in %v\n", len(jobs), time.Since(started).Round(time.Second))
	failed := r.summarize(known, stale)
	if err := r.close(); err != nil {
		return 0, err
	}
	if failed {
		return 1, nil
	}
	return 0, nil
}
