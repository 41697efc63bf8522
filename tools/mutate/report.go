// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"
)

// A report prints the progress, and collects the results. It is safe for concurrent use.
type report struct {
	mu       sync.Mutex
	output   io.Writer
	file     *os.File // nil without -report
	total    int
	parallel int
	results  []reported
	spent    time.Duration
}

type reported struct {
	job
	result
}

func newReport(output io.Writer, path string, total, parallel int) (*report, error) {
	r := &report{output: output, total: total, parallel: parallel}
	if path == "" {
		return r, nil
	}
	file, err := os.Create(path)
	r.file = file
	return r, err
}

func (r *report) close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}

func (r *report) printf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.output, format+"\n", args...)
}

// add adds a result, and prints it with an estimate of the time left.
func (r *report) add(j job, res result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.results = append(r.results, reported{j, res})
	r.spent += res.took
	done := len(r.results)
	left := r.spent / time.Duration(done) * time.Duration(r.total-done) / time.Duration(r.parallel)
	by := ""
	if res.by != "" {
		by = " by " + res.by
	}
	fmt.Fprintf(r.output, "mutate: %d of %d, %v left: %v%s in %.1fs: %s\n", done, r.total, left.Round(time.Second), res.outcome, by, res.took.Seconds(), j.name())
	if r.file != nil {
		fmt.Fprintf(r.file, "%v\t%s\t%.1f\t%s\n", res.outcome, res.by, res.took.Seconds(), j.row())
	}
}

// summarize prints the counts and the survivors. It returns true if a survivor has no reason or a reason has no mutant.
func (r *report) summarize(known survivors, stale []string) (failed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := bufio.NewWriter(r.output)
	defer w.Flush()
	slices.SortFunc(r.results, func(a, b reported) int { return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.from, b.from)) })
	r.printCounts(w)
	var unknown, explained, gone []reported
	for _, res := range r.results {
		_, listed := known[res.name()]
		switch {
		case res.outcome == survived && listed:
			explained = append(explained, res)
		case res.outcome == survived:
			unknown = append(unknown, res)
		case listed:
			gone = append(gone, res)
		}
	}
	printEach(w, "survived, with the listed reason", explained, func(res reported) string { return res.name() + ": " + known[res.name()].reason })
	printEach(w, "no longer survive: remove them from "+survivorsFile, gone, func(res reported) string { return fmt.Sprintf("%s: %v", res.name(), res.outcome) })
	printEach(w, "listed in "+survivorsFile+", but no such mutant exists", stale, func(name string) string { return name })
	printEach(w, "survived without a reason: write a test, or add a line and its reason to "+survivorsFile, unknown, func(res reported) string { return res.row() })
	return len(unknown) > 0 || len(stale) > 0
}

func printEach[T any](w io.Writer, title string, list []T, line func(T) string) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(w, "mutate: %d %s\n", len(list), title)
	for _, each := range list {
		fmt.Fprintf(w, "  %s\n", line(each))
	}
}

// printCounts prints a line per target.
func (r *report) printCounts(w io.Writer) {
	counts := map[string]map[outcome]int{}
	for _, res := range r.results {
		if counts[res.target.name] == nil {
			counts[res.target.name] = map[outcome]int{}
		}
		counts[res.target.name][res.outcome]++
	}
	fmt.Fprintf(w, "%-12s %8s %10s %9s %13s\n", "", "killed", "timed out", "survived", "not compiled")
	for _, t := range targets {
		if n := counts[t.name]; n != nil {
			fmt.Fprintf(w, "%-12s %8d %10d %9d %13d\n", t.name, n[killed], n[timedOut], n[survived], n[notCompiled])
		}
	}
}
