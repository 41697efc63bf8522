// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"go/build"
	"os"
	"path"
	"path/filepath"
	"regexp"
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
			"reservation.go", "slots.go", "steps.go", "storecalls.go", "take.go", "tokens.go", "internal/outage/*.go",
		},
		dir:   ".",
		steps: []step{{}},
	},
	{
		name:  "lease",
		files: []string{"internal/lease/*.go"},
		dir:   "internal/lease",
		steps: []step{{}},
	},
	{
		name:  "shards",
		files: []string{"internal/shards/*.go"},
		dir:   "internal/shards",
		steps: []step{{}},
	},
	{
		name:  "seen",
		files: []string{"internal/seen/*.go"},
		dir:   "internal/seen",
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
		// The Go code that decides: the parts of a take in several slots, their undos, refunds and leases.
		name: "redisstore-code",
		files: []string{
			"redisstore/batch.go", "redisstore/hold.go", "redisstore/leases.go", "redisstore/lender.go",
			"redisstore/markers.go", "redisstore/parts.go", "redisstore/refund.go", "redisstore/slot.go", "redisstore/undo.go",
		},
		dir: "redisstore",
		steps: []step{
			{run: "^(TestAttempts|TestUndo|TestBatch|TestMarkers|TestSlot|TestTags|TestPending|TestLending|TestLeases|TestRefund|TestReset)(_|$)"},
			{run: "^TestStore_OnOneServer$"},
			{run: "^TestFault_(Parts|Denied|Reply|Callers|Canceled|Timeout)"},
			{run: "^(TestHolds|TestStore_InACluster)$"},
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
	{
		// The Go code that decides: how to run a call beside locked rows, and what its answer and its errors mean.
		name: "pgstore-code",
		files: []string{
			"pgstore/failure.go", "pgstore/held.go", "pgstore/hold.go", "pgstore/locked_calls.go", "pgstore/mixed_*.go",
			"pgstore/settle_call.go", "pgstore/sweep.go", "pgstore/tx.go",
		},
		dir: "pgstore",
		steps: []step{
			{run: "^Test(Paths|SettleCall|Held|Retried|Bounds|Hold|FindLocked|TakeTx|RefundTx|WithTx)(_|$)", skip: "NoDeadlock$"},
			{run: "^Test(Store|Holds)$/^unlogged$"},
			{run: "^Test(Take|Sweep|Reset|Clear|Fault_(HoldRepliesLost|ReplyLost|LockHeld|Isolation))(_|$)", skip: "^TestSweep_KeepsTablesFlat$|NoDeadlock$|AllocatesLittle$"},
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
	if patterns == "" {
		return jobs, nil
	}
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

// matchNames returns the jobs whose name matches a regular expression.
func matchNames(jobs []job, expression string) ([]job, error) {
	pattern, err := regexp.Compile(expression)
	if err != nil {
		return nil, fmt.Errorf("-match: %w", err)
	}
	jobs = slices.DeleteFunc(jobs, func(j job) bool { return !pattern.MatchString(j.name()) })
	if len(jobs) == 0 {
		return nil, fmt.Errorf("-match: no mutant has a name that matches %q", expression)
	}
	return jobs, nil
}

// sample returns n random jobs in their order, or all if there are fewer. It ranks each job by a hash of the seed and the
// name of the mutant. Changed code thus exchanges its own mutants only, and the rest of the sample stays.
func sample(jobs []job, n int, seed uint64) []job {
	if n >= len(jobs) {
		return jobs
	}
	type ranked struct {
		place int
		rank  [sha256.Size]byte
	}
	all := make([]ranked, len(jobs))
	for i, j := range jobs {
		all[i] = ranked{i, sha256.Sum256(fmt.Appendf(nil, "%d %s", seed, j.name()))}
	}
	slices.SortFunc(all, func(a, b ranked) int { return bytes.Compare(a.rank[:], b.rank[:]) })
	all = all[:n]
	slices.SortFunc(all, func(a, b ranked) int { return a.place - b.place })
	kept := make([]job, 0, n)
	for _, r := range all {
		kept = append(kept, jobs[r.place])
	}
	return kept
}
