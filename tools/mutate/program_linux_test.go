// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestKillProcessesIn(t *testing.T) {
	dir := t.TempDir()
	inside := filepath.Join(dir, "inside")
	if err := os.Mkdir(inside, 0o755); err != nil {
		t.Fatal(err)
	}
	start := func(dir string) *exec.Cmd {
		cmd := exec.Command("sleep", "600")
		cmd.Dir = dir
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	leftover, other := start(inside), start("")
	killProcessesIn(dir)
	if err := leftover.Wait(); err == nil {
		t.Error("the process in the directory ended by itself")
	}
	if err := other.Process.Kill(); err != nil { // fails if the process has ended
		t.Error(err)
	}
	_ = other.Wait()
}
