// SPDX-License-Identifier: Apache-2.0

// Package meted runs the real mete serve in tests.
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

// Patience is the time limit of every wait for a server.
const Patience = time.Minute

// Main runs the tests of a package and removes the built program. Call it in TestMain.
func Main(m *testing.M) {
	code := m.Run()
	Clean()
	os.Exit(code)
}

// Clean removes the built program, for a TestMain that does more than [Main].
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

// Program returns the path of mete: METE_PROGRAM, or a program that is built once per test run. It has
// the race detector if the tests have it. TestMain must call [Main].
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

// Root returns the root directory of the repository.
func Root(t testing.TB) string {
	t.Helper()
	root, err := FindRoot()
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// FindRoot finds the root directory of the repository: the parent directory with a go.work. It does not use
// the source paths of the program, because scripts/test builds with -trimpath.
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

// A Server is a running mete serve. The test's cleanup ends it.
type Server struct {
	Addr, AdminAddr string // host:port
	URL, AdminURL   string // http://host:port, or https with TLS settings
	Dir             string // of its configuration
	Process         *proctest.Process

	runtime string // directory of the token
	args    []string
	t       testing.TB
}

// Start runs mete serve with a configuration file on free ports, which override its addresses, and waits
// until it is ready. The file is in the first of dirs, or in a new directory.
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

// Run runs mete serve with flags in dir on free ports, and waits until it is ready.
func Run(t testing.TB, dir string, flags ...string) *Server {
	t.Helper()
	s := &Server{Addr: proctest.FreeAddr(t), AdminAddr: proctest.FreeAddr(t), Dir: dir, runtime: t.TempDir(), t: t}
	s.URL, s.AdminURL = "http://"+s.Addr, "http://"+s.AdminAddr
	s.args = slices.Concat([]string{"serve"}, flags, []string{"--listen", s.Addr, "--admin-listen", s.AdminAddr})
	s.Start()
	for _, at := range []*string{&s.URL, &s.AdminURL} { // the server prints them with the scheme
		if secure := "https" + strings.TrimPrefix(*at, "http"); strings.Contains(s.Log(), secure) {
			*at = secure
		}
	}
	return s
}

// Start restarts an ended server at the same addresses and waits until it is ready.
func (s *Server) Start() {
	s.t.Helper()
	cmd := exec.Command(Program(s.t), s.args...)
	cmd.Dir = s.Dir
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+s.runtime, "GORACE=atexit_sleep_ms=0")
	s.Process = proctest.Start(s.t, cmd)
	s.await()
}

func (s *Server) await() {
	s.t.Helper()
	s.Process.WaitReady(Patience, func(context.Context) error {
		if log := s.Log(); strings.Contains(log, "mete is listening on ") || strings.Contains(log, `"msg":"listening"`) {
			return nil
		}
		return errors.New("the log has no line about the listener")
	})
}

// Log returns the output of the server.
func (s *Server) Log() string { return s.Process.Output() }

// TokenFile returns the path of the token that the server created at its start.
func (s *Server) TokenFile() string {
	return filepath.Join(s.runtime, "mete", "admin-"+strings.ReplaceAll(s.AdminAddr, ":", "-")+".token")
}

// Token returns that token, which has the role configure. It exists if the configuration has no tokens.
func (s *Server) Token() string {
	s.t.Helper()
	text, err := os.ReadFile(s.TokenFile())
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}
