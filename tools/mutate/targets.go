// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/build"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// A target is a group of source files with the tests that must kill their mutants.
type target struct {
	name   string
	files  []string // patterns of path.Match, from the root of the repository
	embeds []string // the Go files that embed the scripts among files
	dir    string   // of the package with the tests
	steps  []step   // in this order; a mutant skips the steps after the one that kills it
}

// A step selects tests by patterns of go test. Tests that count allocations fail because of the calls that the program
// adds to each function. Tests that compare the text of a script would kill every mutant.
type step struct{ run, skip string }

// targets are the parts of mete that decide. The first matching target of a file counts.
var targets = []target{
	{
		name:  "bucket",
		files: []string{"bucket/*.go"},
		dir:   "bucket",
		steps: []step{{}},
	},
	{
		name:  "memstore",
		files: []string{"memstore/*.go"},
		dir:   "memstore",
		steps: []step{{}},
	},
	{
		name: "limiter",
		files: []string{
			"attempts.go", "evaluate*.go", "finish.go", "hold*.go", "outage.go", "parts.go", "receipt.go", "refund.go",
			"reservation.go", "slots.go", "steps.go", "take.go", "tokens.go", "internal/outage/*.go",
		},
		dir:   ".",
		steps: []step{{}},
	},
	{
		name:   "redisstore",
		files:  []string{"redisstore/*.lua"},
		embeds: []string{"redisstore/store.go", "redisstore/nodes.go", "redisstore/documents.go"},
		dir:    "redisstore",
		steps: []step{
			{run: "^TestStore_OnOneServer$"},
			{run: "^TestHolds$", skip: "/^cluster"},
			{skip: "^(TestHolds|TestStore_.*|TestFault_.*|TestFormats|TestACL|TestNewLimiter_.*|TestOpen.*|TestModelTransport_.*|TestKeyed_.*|TestHashKey_.*|Example.*|Fuzz.*)$"},
		},
	},
	{
		name: "pgstore",
		files: []string{
			"pgstore/*.sql", "pgstore/internal/schema/migrations/0001_bucket.sql", "pgstore/internal/schema/migrations/0006_hold.sql",
		},
		embeds: []string{"pgstore/statement.go", "pgstore/internal/schema/files.go"},
		dir:    "pgstore",
		steps: []step{
			{run: "^TestStore$/^unlogged$"},
			{run: "^TestHolds$/^unlogged$"},
			{
				run:  "^Test(Paths|Held|Hold|Take|Refund|Reset|Penalty|Log|Slots|Limits|Bounds|Clear|Sweep|Settle|Denial|Rows|Versions)(_|$)",
				skip: "^TestSweep_KeepsTablesFlat$|NoDeadlock$",
			},
		},
	},
}

// A job is a mutant with its target and a number.
type job struct {
	*mutant
	target *target
	id     int
}

// findJobs returns the mutants of all targets below root, in the order of the targets and files.
func findJobs(root string, targets []target) ([]job, error) {
	var jobs []job
	taken := map[string]bool{}
	for i := range targets {
		t := &targets[i]
		for _, pattern := range t.files {
			paths, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
			if err != nil {
				return nil, err
			}
			if len(paths) == 0 {
				return nil, fmt.Errorf("target %s: no file matches %s", t.name, pattern)
			}
			for _, p := range paths {
				relative, err := filepath.Rel(root, p)
				if err != nil {
					return nil, err
				}
				file := filepath.ToSlash(relative)
				if taken[file] || !isCompiled(p) {
					continue
				}
				taken[file] = true
				found, err := findMutants(root, file)
				if err != nil {
					return nil, err
				}
				for j := range found {
					jobs = append(jobs, job{&found[j], t, len(jobs) + 1})
				}
			}
		}
	}
	return jobs, nil
}

// isCompiled reports whether the file is a script, or a Go file that a build for this system compiles.
func isCompiled(file string) bool {
	if filepath.Ext(file) != ".go" {
		return true
	}
	ok, err := build.Default.MatchFile(filepath.Dir(file), filepath.Base(file))
	return ok && err == nil && !strings.HasSuffix(file, "_test.go")
}

// findMutants returns the mutants of one file.
func findMutants(root, file string) ([]mutant, error) {
	source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
	if err != nil {
		return nil, err
	}
	switch path.Ext(file) {
	case ".go":
		return goMutants(file, source)
	case ".lua":
		return luaMutants(file, source), nil
	case ".sql":
		return sqlMutants(file, source), nil
	}
	return nil, fmt.Errorf("%s: mutants exist of Go, Lua and SQL only", file)
}

// selectFiles returns the jobs whose file matches one of the patterns, which commas separate.
func selectFiles(jobs []job, patterns string) ([]job, error) {
	var kept []job
	for _, j := range jobs {
		for pattern := range strings.SplitSeq(patterns, ",") {
			ok, err := path.Match(pattern, j.file)
			if err != nil {
				return nil, fmt.Errorf("-files: %q: %w", pattern, err)
			}
			if ok {
				kept = append(kept, j)
				break
			}
		}
	}
	if len(kept) == 0 {
		return nil, fmt.Errorf("-files: no mutant is in a file that matches %q", patterns)
	}
	return kept, nil
}

// sample returns n random jobs in their order, or all if there are fewer.
func sample(jobs []job, n int, perm func(int) []int) []job {
	if n >= len(jobs) {
		return jobs
	}
	chosen := perm(len(jobs))[:n]
	slices.Sort(chosen)
	kept := make([]job, 0, n)
	for _, i := range chosen {
		kept = append(kept, jobs[i])
	}
	return kept
}
