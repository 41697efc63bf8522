// SPDX-License-Identifier: Apache-2.0

//go:build unix

package proctest

import (
	"os"
	"os/exec"
	"syscall"
)

// setProcessGroup makes cmd the leader of a process group, so that it gets no signals of the test and can be
// killed with its children.
func setProcessGroup(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Setpgid = true
}

// interrupt asks p to end, also if p is paused.
func interrupt(p *os.Process) error {
	err := p.Signal(syscall.SIGTERM)
	_ = resume(p)
	return err
}

func pause(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

func resume(p *os.Process) error { return p.Signal(syscall.SIGCONT) }

// kill kills the group of p, which must not have been waited for: its ID is still valid.
func kill(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }
