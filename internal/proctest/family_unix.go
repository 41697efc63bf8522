// SPDX-License-Identifier: Apache-2.0

//go:build unix

package proctest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

var stopSignals = [...]os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT}

type relative struct {
	pid, parent int
	state       byte // T: stopped, Z: zombie
}

// listFamily returns a process and its children, itself first. The children of the postmaster lead their own
// process groups and have no children.
func listFamily(pid int) ([]relative, error) {
	text, err := exec.Command("ps", "-A", "-o", "pid=,ppid=,stat=").Output()
	if err != nil {
		return nil, fmt.Errorf("ps: %w", err)
	}
	var family []relative
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 3 {
			continue
		}
		id, err := strconv.Atoi(f[0])
		parent, err2 := strconv.Atoi(f[1])
		if err := errors.Join(err, err2); err != nil {
			return nil, fmt.Errorf("ps: %w", err)
		}
		switch r := (relative{id, parent, f[2][0]}); pid {
		case id:
			family = slices.Insert(family, 0, r)
		case parent:
			family = append(family, r)
		}
	}
	if len(family) == 0 || family[0].pid != pid {
		return nil, fmt.Errorf("ps: no process %d", pid)
	}
	return family, nil
}

// haltParent stops a process and returns its family. While the parent is stopped, it starts no children, and
// no child's ID is reused because the parent waits for none.
func haltParent(pid int) (family []relative, err error) {
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), familyTimeout)
	defer cancel()
	err = Poll(ctx, func(context.Context) error {
		family, err = listFamily(pid)
		if err == nil && family[0].state != 'T' {
			err = fmt.Errorf("process %d does not halt", pid)
		}
		return err
	})
	return family, err
}

func pauseFamily(pid int) error {
	family, err := haltParent(pid)
	if err != nil {
		return err
	}
	for _, r := range family[1:] {
		err = errors.Join(err, syscall.Kill(r.pid, syscall.SIGSTOP))
	}
	return err
}

func resumeFamily(pid int) error {
	family, err := listFamily(pid)
	for _, r := range slices.Backward(family) {
		err = errors.Join(err, syscall.Kill(r.pid, syscall.SIGCONT))
	}
	return err
}

func killFamily(pid int) error {
	family, err := haltParent(pid)
	if err != nil {
		return err
	}
	for _, r := range slices.Backward(family) {
		err = errors.Join(err, syscall.Kill(r.pid, syscall.SIGKILL))
	}
	ctx, cancel := context.WithTimeout(context.Background(), familyTimeout)
	defer cancel()
	return errors.Join(err, Poll(ctx, func(context.Context) error {
		for _, r := range family[1:] {
			if now, err := listFamily(r.pid); err == nil && now[0].state != 'Z' {
				return fmt.Errorf("process %d lives on", r.pid)
			}
		}
		return nil
	}))
}

func removeSharedMemory(id string) { _ = exec.Command("ipcrm", "-m", id).Run() }

// servant is the user of programs that refuse to run as root: nil if the test does not run as root.
var servant = sync.OnceValue(func() *syscall.Credential {
	if os.Geteuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err == nil && err2 == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		}
	}
	return nil
})

func demote(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Credential = servant()
}

func chown(path string) error {
	who := servant()
	if who == nil {
		return nil
	}
	return os.Chown(path, int(who.Uid), int(who.Gid))
}
