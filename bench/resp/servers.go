// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/metehq/mete/bench/daemon"
)

// bucketScript is a conventional token bucket, in one hash per key.
//
//go:embed bucket.lua
var bucketScript string

// The servers of a run.
type servers struct {
	dir         string
	mete, redis server
	script      string // the hash of bucketScript in Redis
	version     string // of Redis
}

type server struct {
	host, port, addr string
	daemon           *daemon.Daemon
	cmd              *exec.Cmd
}

func (s *servers) start(ctx context.Context) error {
	var err error
	if s.dir, err = os.MkdirTemp("", "mete-bench-resp-"); err != nil {
		return err
	}
	program, err := daemon.Build(ctx, s.dir, "server", "resp/server")
	if err != nil {
		return err
	}
	if err := s.mete.start(ctx, func(host, port string) *exec.Cmd {
		return exec.Command(program, "-listen", net.JoinHostPort(host, port))
	}); err != nil {
		return err
	}
	if err := s.redis.start(ctx, func(host, port string) *exec.Cmd {
		return exec.Command("redis-server", "--bind", host, "--port", port, "--dir", s.dir, "--save", "", "--appendonly", "no")
	}); err != nil {
		return fmt.Errorf("%w: install redis-server", err)
	}
	client := redis.NewClient(&redis.Options{Addr: s.redis.addr})
	defer client.Close()
	if s.script, err = client.ScriptLoad(ctx, bucketScript).Result(); err != nil {
		return err
	}
	info, err := client.Info(ctx, "server").Result()
	_, version, _ := strings.Cut(info, "redis_version:")
	s.version, _, _ = strings.Cut(version, "\r")
	return err
}

func (s *server) start(ctx context.Context, command func(host, port string) *exec.Cmd) error {
	var err error
	if s.host, s.port, s.addr, err = daemon.FreeAddr(); err != nil {
		return err
	}
	s.cmd = command(s.host, s.port)
	s.daemon, err = daemon.Start(ctx, s.cmd, func(ctx context.Context) error {
		nc, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.addr)
		if err != nil {
			return err
		}
		return nc.Close()
	})
	return err
}

func (s *servers) stop() {
	for _, one := range []*server{&s.mete, &s.redis} {
		if one.daemon != nil {
			one.daemon.Stop()
		}
	}
	_ = os.RemoveAll(s.dir)
}

func conditions(s *servers) string {
	return fmt.Sprintf("%s %s/%s, %d processors, Redis %s", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), s.version)
}
