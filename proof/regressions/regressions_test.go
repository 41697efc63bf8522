// SPDX-License-Identifier: Apache-2.0

package regressions_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// A finding is a bug of a review, and the checker that finds it again.
type finding struct {
	name  string // of the finding, and of its edit in testdata
	what  string
	find  string  // the report must contain this
	by    checker // simulation if it has no name
	quick bool    // belongs to the short tests
}

// A checker is a test that fails with an edit. It has a control run without the edit, which must pass.
type checker struct {
	name  string
	dir   string // of the module, from the root of the repository
	test  []string
	runs  string         // the test
	env   string         // a variable of the environment, of the run with the edit
	again *regexp.Regexp // finds the seed in a report
	seed  string         // the flag of the seed. If there is one, the control runs only the seed that fails with the edit
}

var simulation = checker{
	name: "simulation", dir: "proof", runs: "TestSimulation",
	test:  []string{"./simulation", "-run=^TestSimulation$", "-simulation.first=1", "-simulation.runs=30000"},
	again: regexp.MustCompile(`seed (\d+): `), seed: "-simulation.seed=",
}

// history returns the histories of a world. Their seed decides the calls, but not the threads. With the edit, they run until
// one fails, for at most 9 minutes. The control has as many as a short test.
func history(world string) checker {
	return checker{
		name: "history, " + world, dir: "proof", runs: "TestHistories", env: "METE_TEST_LONG=9m",
		test:  []string{"./history", "-run=^TestHistories$", "-history.world=" + world},
		again: regexp.MustCompile(regexp.QuoteMeta(world) + `.*, seed (\d+): no order`),
	}
}

// from returns the simulation of a world from another seed on, for a bug that few seeds show.
func (c checker) from(world string, seed uint64) checker {
	c.test = append(slices.Clone(c.test), "-simulation.world="+world)
	for i, arg := range c.test {
		if strings.HasPrefix(arg, "-simulation.first=") {
			c.test[i] = fmt.Sprint("-simulation.first=", seed)
		}
	}
	return c
}

var findings = []finding{
	{name: "security-1-turns", what: "a cancellation returns tokens that later work has waited for", find: "G1: bucket"},
	{name: "security-1-refill", what: "a cancellation returns tokens that have refilled", find: "G1: bucket"},
	{name: "security-1-redis", what: "the script of Redis returns tokens that have refilled", find: "tokens are missing, want", by: test("redisstore", "TestUndo_KeepsNoRefill")},
	{name: "security-2", what: "a repeated refund over several slots refunds some of them again", find: "want an error that says maybe spent", by: test("redisstore", "TestRefund_OfSlotsWithoutANodeIsGivenOnce", "-count=20", "-failfast")},
	{name: "security-3", what: "a rollback undoes the charge of local costs", find: "recovery: nodes charged"},
	{name: "security-6", what: "an undone part of a take keeps its refill", find: "tokens are missing, want", by: test("redisstore", "TestUndo_KeepsNoRefill")},
	{name: "security-7", what: "a retry over shards is admitted without a charge", find: "after it was admitted", by: test("internal/shards", "TestSharded_RetryIsNeverUncharged")},
	{name: "security-8", what: "a new row has the time before the wait for its lock", find: "want it as of the end of the wait", by: test("pgstore", "TestTake_ClockAfterTheLock")},
	{name: "security-10", what: "an override gives one bucket two limits", find: "has two limits"},
	{name: "adversary-V1", what: "two versions of a limit forgive what the other has taken", find: "G1: bucket"},
	{name: "adversary-V2", what: "a changed limit loses the debt", find: "changed limit: the bucket misses"},
	{name: "adversary-V3", what: "a retry with charges in another order is charged twice", find: "G2: client", quick: true},
	{name: "adversary-V4", what: "a full bucket is empty under a lower rate", find: "changed limit: the bucket misses"},
	{name: "adversary-V5", what: "a local bucket ignores takes in flight", find: "G1: the only node admits", quick: true},
	{name: "adversary-V7", what: "a refund of several keys is not one step", find: "no order of the operations explains", by: history("memory")},
	{name: "adversary-V8", what: "a take is denied by an early clock", find: "no order of the operations explains", by: history("memory")},
	{name: "simulation-1", what: "a repeated answer replaces newer knowledge", find: "G1: the only node admits"},
	{name: "simulation-2", what: "the reference of lenders returns tokens that others have taken", find: "nothing kept", by: test("internal/lease/leasetest", "TestBook_EntryOfALostAnswer")},
	{name: "simulation-3", what: "a local bucket ignores a take that waits for the charge of another key", find: "G1: the only node admits", by: simulation.from("single node", 2015658)},
	{name: "simulation-4", what: "a local bucket gives away tokens of takes in flight beyond its room", find: "G1: the only node admits", by: simulation.from("single node", 1099511851303)},
	{name: "simulation-2-redis", what: "a lease in Redis returns tokens that others have taken", find: "Kept:true", by: test("redisstore", "TestLending_IsAsTheBookSays")},
	{name: "model-1", what: "a node reports tokens of an entry that has ended", find: "the store has no entry for loans", by: test("internal/lease", "TestTake_EntryEndsDuringLoan")},
}

// test returns a direct test of a package. It is a checker of one sequence of events. A test that finds the bug only with
// some errors of a connection needs several runs.
func test(dir, name string, flags ...string) checker {
	return checker{name: dir + " " + name, dir: ".", runs: name, test: append([]string{"./" + dir, "-run=^" + name + "$"}, flags...)}
}

func TestRegressions(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		t.Run(f.name, func(t *testing.T) {
			if testing.Short() && !f.quick {
				readEdit(t, f.name).mustApply(t, root) // compiling and running the checker with it takes long
				return
			}
			f.run(t, root)
		})
	}
}

func (f *finding) run(t *testing.T, root string) {
	dir := t.TempDir()
	copies, err := readEdit(t, f.name).apply(root, dir)
	if err != nil {
		t.Fatal(err)
	}
	by := f.by
	if by.name == "" {
		by = simulation
	}
	if by.seed == "" {
		by.mustPass(t, root)
	}
	withEdit := by
	if by.name == simulation.name {
		withEdit.test = append(slices.Clone(by.test), "-simulation.find="+f.find)
	}
	began := time.Now()
	out, err := withEdit.run(root, by.env, "-overlay="+writeOverlay(t, dir, copies))
	took := time.Since(began).Round(time.Second)
	switch {
	case err == nil:
		t.Fatalf("%s: %s does not find it:\n%s", f.what, by.name, tail(out))
	case !strings.Contains(out, "--- FAIL: "+by.runs):
		t.Fatalf("%s: %s did not run:\n%s", f.what, by.name, tail(out))
	case !strings.Contains(out, f.find):
		t.Fatalf("%s: %s fails, but its report does not contain %q:\n%s", f.what, by.name, f.find, tail(out))
	}
	seed := "-"
	if by.again != nil {
		m := by.again.FindStringSubmatch(out)
		if m == nil {
			t.Fatalf("%s: the report has no seed:\n%s", by.name, tail(out))
		}
		seed = m[1]
	}
	if by.seed != "" {
		by.name += ", seed " + seed
		by.test = append(slices.Clone(by.test), by.seed+seed)
		by.mustPass(t, root)
	}
	t.Logf("%s: found by %s in %v, seed %s: %s", f.name, withEdit.name, took, seed, reportLine(out, f.find))
}

// controls are the outputs of control runs by the names of checkers, or "" after a pass.
var controls = map[string]string{}

// mustPass runs the checker without an edit, once for all findings. Otherwise a checker that always fails would find all.
func (c *checker) mustPass(t *testing.T, root string) {
	t.Helper()
	out, done := controls[c.name]
	if !done {
		var err error
		if out, err = c.run(root, ""); err == nil && strings.Contains(out, "--- PASS: "+c.runs) {
			out = ""
		}
		controls[c.name] = out
	}
	if out != "" {
		t.Fatalf("%s does not pass without an edit:\n%s", c.name, tail(out))
	}
}

// run runs the checker with a variable of the environment and further arguments, and returns its output.
func (c *checker) run(root, env string, args ...string) (string, error) {
	cmd := exec.Command("go", append(append([]string{"test", "-v", "-count=1", "-vet=off", "-timeout=10m"}, c.test...), args...)...)
	cmd.Dir = filepath.Join(root, c.dir)
	if env != "" {
		cmd.Env = append(cmd.Environ(), env)
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (e *edit) mustApply(t *testing.T, root string) {
	t.Helper()
	if _, err := e.apply(root, t.TempDir()); err != nil {
		t.Fatal(err)
	}
}

// reportLine returns the part of the report from word to the end of its line.
func reportLine(out, word string) string {
	_, rest, _ := strings.Cut(out, word)
	line, _, _ := strings.Cut(word+rest, "\n")
	return line
}

// tail returns the last lines of a long text.
func tail(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(len(lines)-40, 0):], "\n")
}

// Each edit in testdata belongs to a finding.
func TestRegressions_UseAllEdits(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.diff"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, f := range findings {
		names[f.name] = true
	}
	for _, file := range files {
		if name := strings.TrimSuffix(filepath.Base(file), ".diff"); !names[name] {
			t.Errorf("no finding uses %s", file)
		}
	}
}
