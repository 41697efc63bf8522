// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/metehq/mete/bench/daemon"
)

//go:embed policy.yaml
var policy []byte

type server struct {
	dir         string
	addr, admin string // host:port
	pid         int
	daemon      *daemon.Daemon
}

func serve(ctx context.Context, program string) (_ *server, err error) {
	s := &server{}
	if s.dir, err = os.MkdirTemp("", "mete-bench-dashboards-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if program == "" {
		if program, err = daemon.Build(ctx, s.dir, "mete", "../cmd/mete"); err != nil {
			return nil, err
		}
	}
	if _, _, s.addr, err = daemon.FreeAddr(); err != nil {
		return nil, err
	}
	if _, _, s.admin, err = daemon.FreeAddr(); err != nil {
		return nil, err
	}
	file := filepath.Join(s.dir, "policy.yaml")
	if err := os.WriteFile(file, policy, 0o600); err != nil {
		return nil, err
	}
	cmd := exec.Command(program, "serve", "--policy", file, "--listen", s.addr, "--admin-listen", s.admin)
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), "XDG_RUNTIME_DIR="+s.dir)
	s.daemon, err = daemon.Start(ctx, cmd, func(ctx context.Context) error {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.addr)
		if err != nil {
			return err
		}
		return conn.Close()
	})
	if err != nil {
		return nil, err
	}
	s.pid = cmd.Process.Pid
	return s, nil
}

func (s *server) close() {
	if s.daemon != nil {
		s.daemon.Stop()
	}
	_ = os.RemoveAll(s.dir)
}

type figures struct {
	decisions int64
	elapsed   time.Duration
	used      time.Duration // processor time of the server
}

// rate is in decisions per second, cpu in seconds per decision.
func (f figures) rate() float64 { return float64(f.decisions) / f.elapsed.Seconds() }
func (f figures) cpu() float64  { return f.used.Seconds() / float64(f.decisions) }

func (s *server) measure(ctx context.Context, callers int, d time.Duration) (figures, error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var decided atomic.Int64
	var failed error
	var once sync.Once
	var all sync.WaitGroup
	began, before := time.Now(), daemon.CPU(s.pid)
	for n := range callers {
		all.Go(func() {
			count, err := ask(ctx, s.addr, n)
			decided.Add(count)
			if err != nil {
				once.Do(func() { failed = err })
				cancel()
			}
		})
	}
	all.Wait()
	f := figures{decided.Load(), time.Since(began), daemon.CPU(s.pid) - before}
	if failed != nil {
		return f, failed
	}
	if f.decisions == 0 || f.used == 0 {
		return f, fmt.Errorf("%d decisions in %v of the server's time: too little to measure", f.decisions, f.used)
	}
	return f, nil
}
