// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

const (
	startTimeout = 10 * time.Second // of the server, until it answers
	stopTimeout  = 5 * time.Second  // of the server, until it is killed
)

// A server is a Redis server of our own, which keeps nothing on disk.
type server struct {
	addr    string
	version string
	control rueidis.Client // a connection that no limiter uses

	dir    string
	cancel context.CancelFunc
	ended  chan struct{} // closed when the process has ended
}

// startServer starts program on a free port of the loopback interface and waits
// until it answers. It ends when ctx does, or stop is called.
func startServer(ctx context.Context, program string) (*server, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return nil, fmt.Errorf("%w: install it, or say -server PROGRAM", err)
	}
	s := &server{ended: make(chan struct{})}
	if s.addr, err = freeAddr(); err != nil {
		return nil, err
	}
	if s.dir, err = os.MkdirTemp("", "mete-bench-redis-"); err != nil {
		return nil, err
	}
	ctx, s.cancel = context.WithCancel(ctx)
	host, port, _ := net.SplitHostPort(s.addr)
	cmd := exec.CommandContext(ctx, path, "--bind", host, "--port", port, "--dir", s.dir, "--save", "", "--appendonly", "no")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = stopTimeout
	var output bytes.Buffer // to be read when the process has ended
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		close(s.ended)
		s.stop()
		return nil, err
	}
	go func() {
		_ = cmd.Wait()
		close(s.ended)
	}()
	if err := s.connect(ctx); err != nil {
		s.stop()
		return nil, fmt.Errorf("%s: %w\n%s", path, err, &output)
	}
	return s, nil
}

// connect waits until the server answers.
func (s *server) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		control, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{s.addr}})
		if err == nil {
			s.control = control
			break
		}
		select {
		case <-s.ended:
			return errors.New("the server ended before it answered")
		case <-ctx.Done():
			return fmt.Errorf("%w: the server does not answer: %w", ctx.Err(), err)
		case <-again.C:
		}
	}
	info, err := s.info(ctx, "server")
	s.version = info["redis_version"]
	return err
}

// stop ends the server and waits until it has ended.
func (s *server) stop() {
	if s.control != nil {
		s.control.Close()
	}
	s.cancel()
	<-s.ended
	_ = os.RemoveAll(s.dir)
}

// flush forgets all keys.
func (s *server) flush(ctx context.Context) error {
	return s.control.Do(ctx, s.control.B().Flushall().Sync().Build()).Error()
}

// cpu returns the processor time that the server has used so far, in the system
// and for itself.
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

// info returns the fields of a section of INFO.
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

// freeAddr returns the host:port of a port that was free a moment ago.
func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
