// SPDX-License-Identifier: Apache-2.0

//go:build unix

package proctest

import (
	"os"
	"os/exec"
	"syscall"
)

// separate makes cmd the head of a process group, so that a signal meant for
// the test does not reach it and its children can be killed with it.
func separate(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Setpgid = true
}

// interrupt asks p to end. One that is paused would not hear it.
func interrupt(p *os.Process) error {
	err := p.Signal(syscall.SIGTERM)
	_ = resume(p)
	return err
}

func pause(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

func resume(p *os.Process) error { return p.Signal(syscall.SIGCONT) }

// kill ends the group of p, which has not been waited for, so that its id is
// still its own.
func kill(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }
