// SPDX-License-Identifier: Apache-2.0

package proctest

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// systemDirs are Debian's directories for servers, which are not in the PATH of ordinary users.
var systemDirs = []string{"/usr/sbin", "/sbin", "/usr/local/sbin"}

// Find returns the path of a program. If there is none, the test fails with the name of the Debian package.
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

// Build compiles the command in a package directory and returns the path of the program. The test's cleanup
// removes it.
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
