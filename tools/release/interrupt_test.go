// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A signal to scripts/release ends it and the program that it waits for. No tag, no
// folder and no temporary file stays.
func TestRelease_Interrupted(t *testing.T) {
	r := newRepository(t)
	for _, step := range []struct {
		program, argument string // of the command that the signal finds running
		signal            os.Signal
	}{
		{"go", "build", syscall.SIGTERM}, // of the release program
		{"git", "clone", syscall.SIGTERM},
		{"git", "clone", os.Interrupt},
		{"git", "clone", syscall.SIGHUP},
		{"git", "clone", syscall.SIGQUIT},
		{"go", "tidy", syscall.SIGTERM},
	} {
		t.Run(fmt.Sprintf("%v in %s %s", step.signal, step.program, step.argument), func(t *testing.T) {
			before := r.state()
			started := filepath.Join(t.TempDir(), "started")
			if err := syscall.Mkfifo(started, 0o600); err != nil {
				t.Fatal(err)
			}
			event, err := os.OpenFile(started, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(filepath.Join(r.dir, "scripts", "release"), "v0.1.0")
			cmd.Env = append(os.Environ(), "TMPDIR="+r.temp, "STARTED="+started,
				"PATH="+stub(t, step.program, step.argument)+":"+os.Getenv("PATH"))
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			cmd.WaitDelay = time.Minute // for a program that outlives the script
			// A shell lets its jobs in the background ignore some signals, and so would the
			// script. A signal that this process handles is a default one for its children.
			handled := make(chan os.Signal, 1)
			signal.Notify(handled, step.signal)
			defer signal.Stop(handled)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() {
				ended <- cmd.Wait()
				event.Close()
			}()
			if _, err := event.Read(make([]byte, 1)); err != nil {
				t.Fatalf("scripts/release ended before %s %s: %v\n%s", step.program, step.argument, <-ended, &stderr)
			}
			if err := cmd.Process.Signal(step.signal); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; err == nil {
				t.Errorf("scripts/release succeeded after %v", step.signal)
			}
			if step.program+step.argument != "gobuild" && !strings.Contains(stderr.String(), "release: interrupted\n") {
				t.Errorf("standard error is %q, want release: interrupted", &stderr)
			}
			r.isUnchanged(t, before)
		})
	}
}

// stub returns a directory with a program in the place of git or go. Called with the
// argument, it leaves temporary files, reports its start, and runs until a signal ends
// it. Other calls reach the real program.
func stub(t *testing.T, program, argument string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf(`#!/bin/sh
case " $* " in *" %s "*)
	mkdir "$TMPDIR/unfinished" "${GOTMPDIR:-$TMPDIR}/go-build1"
	echo >"$STARTED"
	exec sleep 600 ;;
esac
exec %s "$@"
`, argument, path)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, program), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}
