// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// An outcome is the fate of a mutant.
type outcome int

const (
	survived outcome = iota
	killed
	timedOut
	notCompiled
)

func (o outcome) String() string {
	return [...]string{"survived", "killed", "timed out", "not compiled"}[o]
}

// A result is an outcome with its details.
type result struct {
	outcome
	by   string // the test that failed, if any
	took time.Duration
}

// A mutant may run for timeoutFactor times the duration of the original plus timeoutExtra.
const (
	timeoutFactor = 5
	timeoutExtra  = 10 * time.Second
)

// quickTest is the longest duration of a test that runs before all others of its step.
const quickTest = 200 * time.Millisecond

// A lab is a target that is ready to test its mutants.
type lab struct {
	root, dir     string // dir is for files
	target        *target
	program       string
	broken, alone map[int]bool
	steps         []measuredStep
	extra         time.Duration // timeoutExtra
}

// A measuredStep is a step with the time limit of its mutants.
type measuredStep struct {
	step
	limit time.Duration
}

// testAll tests all jobs. It builds a program for each target, whose tests must pass without a mutant.
func testAll(ctx context.Context, root string, jobs []job, parallel int, r *report) error {
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for len(jobs) > 0 {
		n := 0
		for n < len(jobs) && jobs[n].target == jobs[0].target {
			n++
		}
		l, err := openLab(ctx, root, dir, jobs[:n], r)
		if err != nil {
			return err
		}
		if err := l.testAll(ctx, jobs[:n], parallel, r); err != nil {
			return err
		}
		jobs = jobs[n:]
	}
	return nil
}

// openLab builds the program for the jobs, which have the same target, and measures its steps.
func openLab(ctx context.Context, root, dir string, jobs []job, r *report) (*lab, error) {
	t := jobs[0].target
	started := time.Now()
	b, err := newBuilder(root, dir, t)
	if err != nil {
		return nil, err
	}
	l := &lab{root: root, dir: dir, target: t, extra: timeoutExtra}
	if l.program, l.broken, l.alone, err = b.buildAll(ctx, jobs); err != nil {
		return nil, err
	}
	r.printf("mutate: built the tests of %s with %d mutants in %v", t.name, len(jobs), time.Since(started).Round(time.Second/10))
	for _, s := range t.steps {
		output, limit, err := l.measure(ctx, s)
		if err != nil {
			return nil, err
		}
		r.printf("mutate: a step of %s has a limit of %v", t.name, limit.Round(time.Second/10))
		if quick, took := quickTests(output); len(quick) > 0 {
			first := s
			first.run = "^(" + strings.Join(quick, "|") + ")$"
			l.steps = append(l.steps, measuredStep{first, timeoutFactor*took + l.extra})
			s.skip = strings.Trim(s.skip+"|"+first.run, "|")
		}
		l.steps = append(l.steps, measuredStep{s, limit})
	}
	return l, nil
}

// measure runs a step without a mutant. It returns the output, and the time limit for mutants.
func (l *lab) measure(ctx context.Context, s step) (output string, limit time.Duration, err error) {
	started := time.Now()
	output, err = runProgram(ctx, l.program, l.testDir(), s, time.Hour)
	if err != nil {
		return "", 0, fmt.Errorf("the tests of ./%s fail without a mutant: %w\n%s", l.target.dir, err, output)
	}
	return output, timeoutFactor*time.Since(started) + l.extra, nil
}

func (l *lab) testDir() string { return filepath.Join(l.root, filepath.FromSlash(l.target.dir)) }

// testAll tests the jobs, several at once. The first error ends it.
func (l *lab) testAll(ctx context.Context, jobs []job, parallel int, r *report) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	queue := make(chan job)
	var workers sync.WaitGroup
	for range parallel {
		workers.Go(func() {
			for j := range queue {
				started := time.Now()
				res, err := l.test(ctx, j)
				if err != nil {
					cancel(fmt.Errorf("%s: %w", j.name(), err))
					continue
				}
				res.took = time.Since(started)
				r.add(j, res)
			}
		})
	}
	for _, j := range jobs {
		select {
		case queue <- j:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(queue)
	workers.Wait()
	return context.Cause(ctx)
}

// test runs the steps until one detects the mutant.
func (l *lab) test(ctx context.Context, j job) (result, error) {
	if l.broken[j.id] {
		return result{outcome: notCompiled}, nil
	}
	program, env := l.program, []string{mutantVar + "=" + strconv.Itoa(j.id)}
	var err error
	switch {
	case l.alone[j.id]:
		var b *builder
		if b, err = newBuilder(l.root, l.dir, l.target); err != nil {
			return result{}, err
		}
		defer os.RemoveAll(b.dir)
		program, err = b.buildAlone(ctx, j.mutant)
		if _, ok := errors.AsType[*compileError](err); ok {
			return result{outcome: notCompiled}, nil
		}
	case filepath.Ext(j.file) != ".go":
		var changed string
		original := filepath.Join(l.root, filepath.FromSlash(j.file))
		if changed, err = l.writeScript(original, j.mutant); err == nil {
			defer os.Remove(changed)
		}
		env = []string{originalVar + "=" + original, changedVar + "=" + changed}
	}
	if err != nil {
		return result{}, err
	}
	for _, s := range l.steps {
		output, err := l.runStep(ctx, program, s, env...)
		switch {
		case err == nil:
			continue
		case ctx.Err() != nil:
			return result{}, ctx.Err()
		case errors.Is(err, context.DeadlineExceeded):
			return result{outcome: timedOut}, nil
		case scriptError.MatchString(output):
			return result{outcome: notCompiled}, nil
		}
		return result{outcome: killed, by: failedTest(output)}, nil
	}
	return result{outcome: survived}, nil
}

// runStep runs the step with a mutant. If the limit passes, other programs may have slowed the machine down. runStep
// then measures the original again, and repeats the mutant if the limit has grown.
func (l *lab) runStep(ctx context.Context, program string, s measuredStep, env ...string) (output string, err error) {
	for limit := s.limit; ; {
		output, err = runProgram(ctx, program, l.testDir(), s.step, limit, env...)
		if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			return output, err
		}
		_, again, measureErr := l.measure(ctx, s.step)
		if measureErr != nil {
			return "", measureErr
		}
		if again <= limit {
			return output, err
		}
		limit = 2 * again
	}
}

// writeScript writes a changed script to a file.
func (l *lab) writeScript(original string, m *mutant) (changed string, err error) {
	source, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	file, err := os.CreateTemp(l.dir, "script")
	if err != nil {
		return "", err
	}
	_, err = file.Write(m.apply(source))
	return file.Name(), errors.Join(err, file.Close())
}

var passed = regexp.MustCompile(`(?m)^--- PASS: (\w+) \((\d+\.\d+)s\)$`)

// quickTests returns the names of the tests in an output that took little time, and their duration.
func quickTests(output string) (quick []string, total time.Duration) {
	for _, m := range passed.FindAllStringSubmatch(output, -1) {
		if took, err := time.ParseDuration(m[2] + "s"); err == nil && took <= quickTest {
			quick, total = append(quick, m[1]), total+took
		}
	}
	return quick, total
}

// scriptError matches the errors of servers about a script that does not compile: of Redis, and of PostgreSQL about
// syntax, types, operators and functions.
var scriptError = regexp.MustCompile(`Error compiling script|SQLSTATE (42601|42804|42883|42846|42725)`)

var failed = regexp.MustCompile(`(?m)^ *--- FAIL: (\S+)`)

// failedTest returns the name of the innermost test that failed first.
func failedTest(output string) string {
	name := ""
	for _, m := range failed.FindAllStringSubmatch(output, -1) {
		if name != "" && !strings.HasPrefix(m[1], name+"/") {
			break
		}
		name = m[1]
	}
	return cmp.Or(name, "a crash")
}
