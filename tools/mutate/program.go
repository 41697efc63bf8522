// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// runProgram runs tests of a test program in dir until one fails or the limit passes, and returns the output. If the tests
// pass, err is nil. The program gets its own directory for temporary files. All files and processes that it leaves there
// are removed.
func runProgram(ctx context.Context, program, dir string, s step, limit time.Duration, env ...string) (output string, err error) {
	// A short path, because PostgreSQL and Redis put sockets there. Their users must be able to enter it.
	temporary, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temporary)
	if err := os.Chmod(temporary, 0o755); err != nil {
		return "", err
	}
	defer killProcessesIn(temporary)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	args := []string{"-test.short", "-test.failfast", "-test.v", "-test.timeout=0"}
	if s.run != "" {
		args = append(args, "-test.run="+s.run)
	}
	if s.skip != "" {
		args = append(args, "-test.skip="+s.skip)
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "TMPDIR="+temporary), env...)
	cmd.WaitDelay = time.Second // a server that the tests started may keep the output open
	var text tail
	cmd.Stdout, cmd.Stderr = &text, &text
	err = cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return string(text.kept), err
}

// killProcessesIn kills the processes whose working directory is below dir: servers of tests that ended without their
// cleanup. It needs the proc file system of Linux. On other systems such servers remain.
func killProcessesIn(dir string) {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range links {
		at, err := os.Readlink(link)
		if err != nil || !strings.HasPrefix(at, dir+string(filepath.Separator)) {
			continue
		}
		var pid int
		if _, err := fmt.Sscanf(link, "/proc/%d/cwd", &pid); err != nil {
			continue
		}
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill()
		}
	}
}

// A tail keeps the end of an output.
type tail struct{ kept []byte }

const maxTail = 1 << 20

func (t *tail) Write(text []byte) (int, error) {
	t.kept = append(t.kept, text...)
	if n := len(t.kept); n > 2*maxTail {
		t.kept = append(t.kept[:0], t.kept[n-maxTail:]...)
	}
	return len(text), nil
}
