// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/metehq/mete/bench/daemon"
)

type server struct {
	program string

	addr    string
	version string
	control rueidis.Client // a connection that no limiter uses

	dir    string
	daemon *daemon.Daemon
}

// start starts the server on a free loopback port and waits until it answers. It ends with ctx or stop.
func (s *server) start(ctx context.Context) error {
	path, err := exec.LookPath(s.program)
	if err != nil {
		return fmt.Errorf("%w: install it, or set -server PROGRAM", err)
	}
	var host, port string
	if host, port, s.addr, err = daemon.FreeAddr(); err != nil {
		return err
	}
	if s.dir, err = os.MkdirTemp("", "mete-bench-redis-"); err != nil {
		return err
	}
	cmd := exec.Command(path, "--bind", host, "--port", port, "--dir", s.dir, "--save", "", "--appendonly", "no")
	if s.daemon, err = daemon.Start(ctx, cmd, s.connect); err != nil {
		s.stop()
	}
	return err
}

// connect fails until the server answers.
func (s *server) connect(ctx context.Context) error {
	if s.control == nil {
		control, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{s.addr}})
		if err != nil {
			return err
		}
		s.control = control
	}
	info, err := s.info(ctx, "server")
	s.version = info["redis_version"]
	return err
}

func (s *server) stop() {
	if s.control != nil {
		s.control.Close()
	}
	if s.daemon != nil {
		s.daemon.Stop()
	}
	_ = os.RemoveAll(s.dir)
}

func (s *server) flush(ctx context.Context) error {
	return s.control.Do(ctx, s.control.B().Flushall().Sync().Build()).Error()
}

// cpu returns the processor time of the server, user and system.
func (s *server) cpu(ctx context.Context) (time.Duration, error) {
	info, err := s.info(ctx, "cpu")
	if err != nil {
		return 0, err
	}
	var total time.Duration
	for _, name := range []string{"used_cpu_sys", "used_cpu_user"} {
		seconds, err := strconv.ParseFloat(info[name], 64)
		if err != nil {
			return 0, fmt.Errorf("INFO cpu: %s: %w", name, err)
		}
		total += time.Duration(seconds * float64(time.Second))
	}
	return total, nil
}

func (s *server) info(ctx context.Context, section string) (map[string]string, error) {
	text, err := s.control.Do(ctx, s.control.B().Info().Section(section).Build()).ToString()
	if err != nil {
		return nil, fmt.Errorf("INFO %s: %w", section, err)
	}
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields, nil
}
