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
	// stopGrace is the time between the signal to stop and the kill at the end of a test. stopPatience is the
	// same for [Process.Stop].
	stopGrace, stopPatience = 5 * time.Second, 30 * time.Second

	// outputShown is the maximum output of a process that a failed test logs, in bytes.
	outputShown = 16 << 10
)

// A Process is a program that runs during a test. It is safe for concurrent use. The test's cleanup ends it,
// and logs its output if the test failed.
type Process struct {
	t      testing.TB
	cmd    *exec.Cmd
	output string        // path of the file
	done   chan struct{} // closed when the process has ended
	err    error         // of Wait; read it after done
	paused atomic.Bool
}

// Start starts cmd in its own process group, in an empty directory unless cmd.Dir is set. [Process.Output]
// returns its standard output and error.
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
	setProcessGroup(cmd)
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

func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Output returns the output so far.
func (p *Process) Output() string {
	p.t.Helper()
	text, err := os.ReadFile(p.output)
	if err != nil {
		p.t.Errorf("output of %s: %v", p.cmd.Path, err)
	}
	return string(text)
}

// Done returns a channel that is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Signal sends a signal to the process.
func (p *Process) Signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Errorf("signal %v to %s: %v", s, p.cmd.Path, err)
	}
}

// Pause stops the process: the system still accepts connections, and the process does not answer.
func (p *Process) Pause() {
	p.t.Helper()
	p.paused.Store(true)
	if err := pause(p.cmd.Process); err != nil {
		p.t.Errorf("pause %s: %v", p.cmd.Path, err)
	}
}

// Resume continues a paused process.
func (p *Process) Resume() {
	p.t.Helper()
	p.paused.Store(false)
	if err := resume(p.cmd.Process); err != nil {
		p.t.Errorf("resume %s: %v", p.cmd.Path, err)
	}
}

// Kill kills the process and its children, and waits until they have ended. The process may be paused or have ended.
func (p *Process) Kill() {
	select {
	case <-p.done:
		return
	default:
	}
	kill(p.cmd.Process)
	<-p.done
}

// isRunning reports whether the process runs and is not paused.
func (p *Process) isRunning() bool {
	select {
	case <-p.done:
		return false
	default:
		return !p.paused.Load()
	}
}

// Stop asks the process to end, waits for it, and returns nil for exit status 0. A process that does not end
// within 30 s is killed with its children, and the test fails.
func (p *Process) Stop() error {
	p.t.Helper()
	if !p.stop(stopPatience) {
		p.t.Errorf("%s did not end within %v of being asked", p.cmd.Path, stopPatience)
	}
	return p.err
}

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
