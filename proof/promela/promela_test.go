// SPDX-License-Identifier: Apache-2.0

package promela

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/internal/proctest"
)

const (
	// longest is the time limit of one search, on a busy machine.
	longest = 20 * time.Minute

	megabytes = "6000"  // of one search
	depth     = 100_000 // of one search
)

// A result is the outcome of a search.
type result struct {
	states  int
	elapsed time.Duration // of a processor
	broken  string        // the property that an execution breaks, or ""
	steps   string        // of this execution
	skipped []string      // statements that no execution reaches
}

// TestModels searches all executions of each model. Without a fault, none breaks a promise.
func TestModels(t *testing.T) {
	for _, m := range all {
		for _, run := range m.runs {
			if testing.Short() && !run.quick {
				continue
			}
			t.Run(m.file+run.name(), func(t *testing.T) {
				got := search(t, m.file, run.defines...)
				if t.Logf("%d states in %v of processor time", got.states, got.elapsed.Round(10*time.Millisecond)); got.broken != "" {
					t.Errorf("an execution breaks %s:\n%s", got.broken, got.steps)
				} else if run.whole && len(got.skipped) > 0 {
					t.Errorf("no execution reaches these statements:\n%s", strings.Join(got.skipped, "\n"))
				}
			})
		}
	}
}

// TestModels_FindFaults takes one protection out of a model. The search must then find an execution that breaks the promise.
func TestModels_FindFaults(t *testing.T) {
	for _, m := range all {
		for _, f := range m.faults {
			if testing.Short() && !f.quick {
				continue
			}
			t.Run(m.file+"/"+f.name, func(t *testing.T) {
				got := search(t, m.file, append(slices.Clone(f.defines), f.name)...)
				if got.broken != f.breaks {
					t.Fatalf("the search found %q after %d states, want a violation of %s\n%s", got.broken, got.states, f.breaks, got.steps)
				}
				t.Logf("breaks %s after %d states in %v:\n%s", got.broken, got.states, got.elapsed.Round(10*time.Millisecond), got.steps)
			})
		}
	}
}

// search searches all executions of a model, until one breaks a property.
func search(t *testing.T, file string, defines ...string) result {
	t.Helper()
	spin, gcc := proctest.Find(t, "spin", "spin"), proctest.Find(t, "gcc", "gcc")
	model, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	dir, options := t.TempDir(), []string(nil)
	for _, d := range defines {
		options = append(options, "-D"+d)
	}
	// With -o3, which merges no statements, the trail can be replayed exactly.
	run(t, dir, spin, append(slices.Clone(options), "-a", "-o3", model)...)
	run(t, dir, gcc, "-O2", "-w", "-DSAFETY", "-DMEMLIM="+megabytes, "-o", "pan", "pan.c")
	output, elapsed := runTimed(t, dir, filepath.Join(dir, "pan"), "-m"+strconv.Itoa(depth), "-w22")
	r := result{elapsed: elapsed}
	if r.states, r.broken, err = parseSearch(output); err != nil {
		t.Fatalf("%v:\n%s", err, output)
	}
	for _, m := range unreached.FindAllStringSubmatch(output, -1) {
		r.skipped = append(r.skipped, m[1])
	}
	if r.broken != "" {
		r.steps = readTrail(run(t, dir, spin, append(options, "-T", "-k", trail(t, dir), model)...))
	}
	return r
}

// run runs a program in a directory and returns its output.
func run(t *testing.T, dir, program string, args ...string) string {
	t.Helper()
	output, _ := runTimed(t, dir, program, args...)
	return output
}

// runTimed is run. It also returns the processor time, which does not depend on other load of the machine.
func runTimed(t *testing.T, dir, program string, args ...string) (string, time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", filepath.Base(program), err, output)
	}
	return string(output), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

func trail(t *testing.T, dir string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*.trail"))
	if err != nil || len(found) != 1 {
		t.Fatalf("trails in %s: %v, error %v; want one", dir, found, err)
	}
	return found[0]
}

var (
	errorCount = regexp.MustCompile(`(?m)errors: (\d+)$`)
	stateCount = regexp.MustCompile(`(?m)^ *([0-9.e+]+) states, stored`)
	unreached  = regexp.MustCompile(`(?m)^\t\S*/(\w+\.pml:\d+, state \d+, "(?:[^-].*|-[^e].*)")$`)
	violation  = regexp.MustCompile(`(?m)^pan:\d+: (?:assertion violated \(?(\w+)\)?|(invalid end state)) `)
)

// readTrail returns the lines that the model prints, without the variables at the end.
func readTrail(output string) string {
	output, _, _ = strings.Cut(output, "spin: trail ends")
	var lines []string
	for line := range strings.Lines(output) {
		if !strings.HasPrefix(line, "spin: ") {
			lines = append(lines, "\t"+line)
		}
	}
	return strings.Join(lines, "")
}

// TestModels_AreListed compares the models in this directory with the test and the documentation.
func TestModels_AreListed(t *testing.T) {
	files, err := filepath.Glob("*.pml")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	doc := read(t, "README.md")
	for _, m := range all {
		listed = append(listed, m.file)
		text := read(t, m.file)
		if !strings.Contains(doc, "`"+m.file+"`") {
			t.Errorf("README.md does not list %s", m.file)
		}
		for _, f := range m.faults {
			if !strings.Contains(text, " * "+f.name+":") {
				t.Errorf("the header of %s does not describe %s", m.file, f.name)
			}
			if !strings.Contains(doc, "`"+f.name+"`") {
				t.Errorf("README.md does not list %s", f.name)
			}
		}
		for _, name := range regexp.MustCompile(`(?m)^#\s*if(?:n?def) ((?:SECURITY|ADVERSARY|WITHOUT)_\w+)`).FindAllStringSubmatch(text, -1) {
			if !slices.ContainsFunc(m.faults, func(f fault) bool { return f.name == name[1] }) {
				t.Errorf("no test takes %s out of %s", name[1], m.file)
			}
		}
	}
	files = slices.DeleteFunc(files, func(f string) bool { return slices.Contains(parts, f) })
	slices.Sort(listed)
	if !slices.Equal(files, listed) {
		t.Errorf("models %v, tested are %v", files, listed)
	}
}

var mirrors = regexp.MustCompile(`(?m)^ \* Mirrors: (\S+): (.+)$`)

// TestModels_NameTheCode checks that the functions that a model mirrors still exist. If this test fails, compare the model
// with the new code.
func TestModels_NameTheCode(t *testing.T) {
	for _, m := range all {
		found := mirrors.FindAllStringSubmatch(read(t, m.file), -1)
		if len(found) == 0 {
			t.Errorf("%s does not name the code that it mirrors", m.file)
		}
		for _, f := range found {
			code, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(f[1])))
			if err != nil {
				t.Errorf("%s: %v", m.file, err)
				continue
			}
			for name := range strings.SplitSeq(f[2], ", ") {
				if ok, err := regexp.Match(`(?mi)(func|function)( \([^)]*\))? (\{schema\}\.)?(\{bucket\}_)?`+regexp.QuoteMeta(name)+`\b|(?m)^\s*`+regexp.QuoteMeta(name)+` = function`, code); err != nil || !ok {
					t.Errorf("%s: %s has no function %s", m.file, f[1], name)
				}
			}
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")))
}
