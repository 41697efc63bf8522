// SPDX-License-Identifier: Apache-2.0

package clock

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

//go:embed shift.c.txt
var shiftC string

//go:embed shift.go.txt
var shiftGo string

var (
	environment sync.Mutex // guards the environment of this process while a server starts

	dir = sync.OnceValues(func() (string, error) {
		dir, err := os.MkdirTemp("", "mete-clock-")
		if err == nil {
			err = os.Chmod(dir, 0o755) // for PostgreSQL's user
		}
		return dir, err
	})
	buildLibrary = sync.OnceValues(compileLibrary)
	makeOverlay  = sync.OnceValues(writeOverlay)
)

// Clean removes the built files. Call it when the tests of a process have ended.
func Clean() {
	if dir, err := dir(); err == nil {
		os.RemoveAll(dir)
	}
}

// library returns the path of the library for programs that are not in Go.
func library(t testing.TB) string {
	t.Helper()
	path, err := buildLibrary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func compileLibrary() (string, error) {
	dir, err := dir()
	if err != nil {
		return "", err
	}
	source, path := filepath.Join(dir, "shift.c"), filepath.Join(dir, "shift.so")
	if err := os.WriteFile(source, []byte(shiftC), 0o644); err != nil {
		return "", err
	}
	if out, err := exec.Command("gcc", "-shared", "-fPIC", "-O2", "-o", path, source).CombinedOutput(); err != nil {
		return "", fmt.Errorf("clock: gcc: run scripts/setup: %w\n%s", err, out)
	}
	return path, nil
}

// writeOverlay returns the file for go build -overlay.
func writeOverlay() (string, error) {
	dir, err := dir()
	if err != nil {
		return "", err
	}
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	std := filepath.Join(strings.TrimSpace(string(out)), "src", "time")
	text, err := os.ReadFile(filepath.Join(std, "time.go"))
	if err != nil {
		return "", err
	}
	const before = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()"
	shifted := strings.Replace(string(text), before, strings.Replace(before, "runtimeNow", "shiftedNow", 1), 1)
	if shifted == string(text) {
		return "", fmt.Errorf("clock: %s of %s has no %q", filepath.Join(std, "time.go"), runtime.Version(), before)
	}
	replace := map[string]string{}
	for name, text := range map[string]string{"time.go": shifted, "shift.go": shiftGo} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return "", err
		}
		replace[filepath.Join(std, name)] = path
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, overlay, 0o644)
}

// BuildGo builds a Go package with the other time.Now. The package is a path or an import path, seen from the directory.
func BuildGo(moduleDir, pkg, output string, workspace bool) error {
	overlay, err := makeOverlay()
	if err != nil {
		return err
	}
	cmd := exec.Command("go", "build", "-trimpath", "-overlay", overlay, "-ldflags=-w", "-o", output, pkg)
	cmd.Dir = moduleDir
	cmd.Env = os.Environ()
	if !workspace {
		cmd.Env = append(cmd.Env, "GOWORK=off")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return nil
}
