// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"time"

	"github.com/metehq/mete/bench/daemon"
)

// A stage starts the servers of a run, each when it is first needed, and keeps them to the end. An idle
// server uses no processor time.
type stage struct {
	mete, floor string // programs

	dir     string
	running map[string]*server
	daemons []*daemon.Daemon
}

// A server answers at url. Its processor time includes all its processes.
type server struct {
	url  string
	pids []int
	warm bool
}

func (s *stage) open(ctx context.Context) (err error) {
	if _, err := exec.LookPath("wrk"); err != nil {
		return fmt.Errorf("%w: install it", err)
	}
	if s.dir, err = os.MkdirTemp("", "mete-bench-http-"); err != nil {
		return err
	}
	_, err = s.write(plainFile, wrkScript)
	if err == nil {
		_, err = s.write(pacedFile, append(wrkScript, pauses...))
	}
	if err == nil {
		_, err = s.write("policy.yaml", policy)
	}
	if err == nil && s.mete == "" {
		s.mete, err = daemon.Build(ctx, s.dir, "mete", "../cmd/mete")
	}
	if err == nil {
		s.floor, err = daemon.Build(ctx, s.dir, "floor", "http/floor")
	}
	if err != nil {
		s.close()
	}
	return err
}

// close ends all servers, in reverse order, and removes their files.
func (s *stage) close() {
	for i := len(s.daemons) - 1; i >= 0; i-- {
		s.daemons[i].Stop()
	}
	_ = os.RemoveAll(s.dir)
}

func (s *stage) startOnce(name string, start func() (*server, error)) (*server, error) {
	if srv := s.running[name]; srv != nil {
		return srv, nil
	}
	srv, err := start()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	s.running[name] = srv
	return srv, nil
}

// startServer starts a program that listens on addr, with additional environment variables.
func (s *stage) startServer(ctx context.Context, variables []string, addr, program string, args ...string) (*server, error) {
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), variables...)
	d, err := daemon.Start(ctx, cmd, func(ctx context.Context) error {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err != nil {
			return err
		}
		return conn.Close()
	})
	if err != nil {
		return nil, err
	}
	s.daemons = append(s.daemons, d)
	return &server{url: "http://" + addr, pids: []int{cmd.Process.Pid}}, nil
}

// cpu returns the processor time of the server, or 0 if it is unknown.
func (s *server) cpu() (total time.Duration) {
	for _, pid := range s.pids {
		total += daemon.CPU(pid)
	}
	return total
}
