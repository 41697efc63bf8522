// SPDX-License-Identifier: Apache-2.0

package proctest

import (
	"fmt"
	"math/rand/v2"
	"net"
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

// Ports below those that systems give to outgoing connections and to listeners
// on port 0, so that only another FreeAddr could take one in the meantime.
const (
	minPort = 10_000
	maxPort = 30_000
)

// FreeAddr returns host:port of a port on the loopback interface that was free
// a moment ago. For a program that cannot choose one itself and say which.
func FreeAddr(t testing.TB) string {
	t.Helper()
	addr, err := freeAddr()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

func freeAddr() (string, error) {
	var err error
	for range 100 {
		addr := loopback(minPort + rand.IntN(maxPort-minPort))
		var l net.Listener
		if l, err = net.Listen("tcp", addr); err == nil {
			return addr, l.Close()
		}
	}
	return "", fmt.Errorf("find a free port: %w", err)
}
