// SPDX-License-Identifier: Apache-2.0

package proctest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

const (
	// stopGrace is how long a process may take to end when it is asked to,
	// before it is killed with all it started: at the end of its test, and where the
	// test waits for how it ends.
	stopGrace, stopPatience = 5 * time.Second, 30 * time.Second

	// outputShown is how much of a process's output a failing test shows.
	outputShown = 16 << 10
)

// A Process is a program that runs beside a test. It is safe for concurrent
// use. The test's cleanup ends it and, where the test failed, shows what it
// wrote.
type Process struct {
	t      testing.TB
	cmd    *exec.Cmd
	output string        // path of the file
	done   chan struct{} // closed when the process has ended
	err    error         // how; read after done
	paused atomic.Bool
}

// Start starts cmd as a process group of its own, in an empty directory unless
// cmd.Dir is set. Its standard output and error are kept for [Process.Output].
func Start(t testing.TB, cmd *exec.Cmd) *Process {
	t.Helper()
	dir := t.TempDir()
	output, err := os.Create(filepath.Join(dir, "output"))
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	if cmd.Dir == "" {
		cmd.Dir = dir
	}
	cmd.Stdout, cmd.Stderr = output, output
	separate(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", cmd.Path, err)
	}
	p := &Process{t: t, cmd: cmd, output: output.Name(), done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		p.stop(stopGrace)
		if t.Failed() {
			t.Logf("output of %s:\n%s", cmd.Path, p.tail())
		}
	})
	return p
}

// Pid returns the process's id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Output returns what the process has written so far.
func (p *Process) Output() string {
	p.t.Helper()
	text, err := os.ReadFile(p.output)
	if err != nil {
		p.t.Errorf("output of %s: %v", p.cmd.Path, err)
	}
	return string(text)
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Signal sends a signal to the process.
func (p *Process) Signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Errorf("signal %v to %s: %v", s, p.cmd.Path, err)
	}
}

// Pause halts the process where it is: what it listens on still takes
// connections, and nothing is answered.
func (p *Process) Pause() {
	p.t.Helper()
	p.paused.Store(true)
	if err := pause(p.cmd.Process); err != nil {
		p.t.Errorf("pause %s: %v", p.cmd.Path, err)
	}
}

// Resume lets a paused process go on.
func (p *Process) Resume() {
	p.t.Helper()
	p.paused.Store(false)
	if err := resume(p.cmd.Process); err != nil {
		p.t.Errorf("resume %s: %v", p.cmd.Path, err)
	}
}

// Kill ends the process with all it started, without a word to it, and waits
// until it has ended. It may be paused, or have ended already.
func (p *Process) Kill() {
	select {
	case <-p.done:
		return
	default:
	}
	kill(p.cmd.Process)
	<-p.done
}

// answers says whether the process is there and not paused.
func (p *Process) answers() bool {
	select {
	case <-p.done:
		return false
	default:
		return !p.paused.Load()
	}
}

// Stop asks the process to end, waits until it has, and returns how it ended:
// nil for exit status 0. One that does not end within 30 s is killed with all it
// started, which fails the test.
func (p *Process) Stop() error {
	p.t.Helper()
	if !p.stop(stopPatience) {
		p.t.Errorf("%s did not end within %v of being asked", p.cmd.Path, stopPatience)
	}
	return p.err
}

// stop reports whether the process ended without being killed.
func (p *Process) stop(grace time.Duration) bool {
	err := interrupt(p.cmd.Process)
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		grace = 0
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return true
	case <-timer.C:
	}
	p.Kill()
	return false
}

func (p *Process) tail() string {
	text := p.Output()
	if len(text) > outputShown {
		text = "…" + text[len(text)-outputShown:]
	}
	return text
}
