// SPDX-License-Identifier: Apache-2.0

package proctest

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// systemDirs are where Debian keeps servers, off the PATH of ordinary users.
var systemDirs = []string{"/usr/sbin", "/sbin", "/usr/local/sbin"}

// Find returns the path of a program on this machine. Where there is none the
// test fails, naming the Debian package that has it.
func Find(t testing.TB, program, debianPackage string) string {
	t.Helper()
	if path, err := exec.LookPath(program); err == nil {
		return path
	}
	for _, dir := range systemDirs {
		if path, err := exec.LookPath(filepath.Join(dir, program)); err == nil {
			return path
		}
	}
	t.Fatalf("%s not found: run make setup, or apt-get install %s", program, debianPackage)
	return ""
}

// Build compiles the command in a package directory and returns the path of the
// program, which is removed with the test.
func Build(t testing.TB, dir string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", program, ".")
	cmd.Dir = dir
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build in %s: %v\n%s", dir, err, output)
	}
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("go build in %s made no program: %v", dir, err)
	}
	return program
}
