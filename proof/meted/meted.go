// SPDX-License-Identifier: Apache-2.0

// Package meted runs the real mete serve beside a test.
package meted

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/metehq/mete/internal/proctest"
)

// Patience bounds every wait for a server. Nothing waits that long.
const Patience = time.Minute

// Main is what a package's TestMain calls: it runs the tests, and removes the
// program that they were made with.
func Main(m *testing.M) {
	code := m.Run()
	Clean()
	os.Exit(code)
}

// Clean removes the program that tests were made with: for a TestMain that has more
// to end than [Main].
func Clean() {
	if program.dir != "" {
		os.RemoveAll(program.dir)
	}
}

var program struct {
	once      sync.Once
	dir, path string
	err       error
}

// Program returns the path of mete, which is built once in a run of tests, with
// the race detector where the tests have it; or that of METE_PROGRAM. The package's
// TestMain must be [Main].
func Program(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("METE_PROGRAM"); path != "" {
		return path
	}
	program.once.Do(func() {
		if program.dir, program.err = os.MkdirTemp("", "mete-proof-"); program.err != nil {
			return
		}
		program.path = filepath.Join(program.dir, "mete")
		args := []string{"build", "-buildvcs=false", "-o", program.path}
		if raceEnabled {
			args = append(args, "-race")
		}
		cmd := exec.Command("go", append(args, ".")...)
		cmd.Dir = filepath.Join(Root(t), "cmd", "mete")
		if output, err := cmd.CombinedOutput(); err != nil {
			program.err = fmt.Errorf("go build: %w\n%s", err, output)
		}
	})
	if program.err != nil {
		t.Fatal(program.err)
	}
	return program.path
}

// Root is the directory of the repository.
func Root(t testing.TB) string {
	t.Helper()
	root, err := FindRoot()
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// FindRoot finds the directory of the repository above the working directory, by its
// go.work. The program does not know its source: scripts/test builds with -trimpath.
func FindRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no go.work above %s: run tests in the repository", start)
		}
	}
}

// A Server is mete serve. The test's cleanup ends it.
type Server struct {
	Addr, AdminAddr string // host:port
	URL, AdminURL   string // http://host:port, or https where the configuration has TLS
	Dir             string // of its configuration
	Process         *proctest.Process

	runtime string // directory of the token
	args    []string
	t       testing.TB
}

// Start runs mete serve on free ports with this configuration file, whose
// directory is the first of dirs or a new one, and waits until it is ready. Its
// listen and admin_listen are overridden.
func Start(t testing.TB, config string, dirs ...string) *Server {
	t.Helper()
	dir := t.TempDir()
	if len(dirs) > 0 {
		dir = dirs[0]
	}
	path := filepath.Join(dir, "meted.yaml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return Run(t, dir, "--config", path)
}

// Run runs mete serve on free ports with these flags, in dir, and waits until it is
// ready.
func Run(t testing.TB, dir string, flags ...string) *Server {
	t.Helper()
	s := &Server{Addr: proctest.FreeAddr(t), AdminAddr: proctest.FreeAddr(t), Dir: dir, runtime: t.TempDir(), t: t}
	s.URL, s.AdminURL = "http://"+s.Addr, "http://"+s.AdminAddr
	s.args = slices.Concat([]string{"serve"}, flags, []string{"--listen", s.Addr, "--admin-listen", s.AdminAddr})
	s.Start()
	for _, at := range []*string{&s.URL, &s.AdminURL} { // which the server says, with the scheme
		if secure := "https" + strings.TrimPrefix(*at, "http"); strings.Contains(s.Log(), secure) {
			*at = secure
		}
	}
	return s
}

// Start starts the server again that has ended, at the same addresses, and waits until
// it is ready.
func (s *Server) Start() {
	s.t.Helper()
	cmd := exec.Command(Program(s.t), s.args...)
	cmd.Dir = s.Dir
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+s.runtime, "GORACE=atexit_sleep_ms=0")
	s.Process = proctest.Start(s.t, cmd)
	s.await()
}

// await waits until the server says that it listens.
func (s *Server) await() {
	s.t.Helper()
	s.Process.WaitReady(Patience, func(context.Context) error {
		if log := s.Log(); strings.Contains(log, "mete is listening on ") || strings.Contains(log, `"msg":"listening"`) {
			return nil
		}
		return errors.New("it has not said that it listens")
	})
}

// Log is all that the server has written.
func (s *Server) Log() string { return s.Process.Output() }

// TokenFile is where the server left the token that it made when it started.
func (s *Server) TokenFile() string {
	return filepath.Join(s.runtime, "mete", "admin-"+strings.ReplaceAll(s.AdminAddr, ":", "-")+".token")
}

// Token is the one that the server made when it started, for a configuration
// without tokens of its own. Its role is to configure.
func (s *Server) Token() string {
	s.t.Helper()
	text, err := os.ReadFile(s.TokenFile())
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}
