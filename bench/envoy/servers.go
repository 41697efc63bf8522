// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/metehq/mete/bench/daemon"
)

// A server is a process that answers calls, and the rates of its rounds.
type server struct {
	name    string
	addr    string
	process *os.Process
	rates   []float64 // calls per second
	cpu     []float64 // processor time of the server for a call, in µs
	store   []float64 // processor time of Redis for a call, in µs
	bare    []float64 // the rate divided by the rate of the echo in the same round
	latency string    // of the last round
}

const echoName = "bare grpc-go echo"

// The servers of the original. The last one has the best settings that we found in its README: its pool has a
// connection for each caller. Its pipeline settings act only in a Redis Cluster.
const (
	originalName = "envoyproxy/ratelimit, Redis"
	tunedName    = "envoyproxy/ratelimit, pool of 64, Redis"
)

// A field has all servers of a run.
type field struct {
	o       options
	dir     string
	redis   string      // host:port
	store   *os.Process // Redis
	servers []*server
	daemons []*daemon.Daemon
}

func (f *field) stop() {
	for _, d := range f.daemons {
		d.Stop()
	}
	_ = os.RemoveAll(f.dir)
}

// startField starts Redis and all servers.
func startField(ctx context.Context, o options) (*field, error) {
	f := &field{o: o}
	var err error
	if f.dir, err = os.MkdirTemp("", "mete-bench-envoy-"); err != nil {
		return nil, err
	}
	if err := f.startAll(ctx); err != nil {
		f.stop()
		return nil, err
	}
	return f, nil
}

func (f *field) startAll(ctx context.Context) error {
	host, port, addr, err := daemon.FreeAddr()
	if err != nil {
		return err
	}
	f.redis = addr
	cmd := exec.Command("redis-server", "--bind", host, "--port", port, "--dir", f.dir, "--save", "", "--appendonly", "no")
	if err := f.start(ctx, cmd, addr); err != nil {
		return err
	}
	f.store = cmd.Process
	for _, own := range []struct{ name, kind, redis string }{
		{echoName, kindEcho, ""},
		{"mete: policy, memory", kindPolicy, ""},
		{"mete: drop-in, memory", kindDropIn, ""},
		{"mete: policy, Redis", kindPolicy, f.redis},
		{"mete: drop-in, Redis", kindDropIn, f.redis},
	} {
		if own.name != echoName && !f.o.only.MatchString(own.name) {
			continue
		}
		if err := f.startOwn(ctx, own.name, own.kind, own.redis); err != nil {
			return err
		}
	}
	for _, other := range []struct{ name, pool string }{{originalName, "10"}, {tunedName, "64"}} {
		if f.o.only.MatchString(other.name) {
			if err := f.startOriginal(ctx, other.name, other.pool); err != nil {
				return err
			}
		}
	}
	return nil
}

// start runs a program until it accepts connections at addr.
func (f *field) start(ctx context.Context, cmd *exec.Cmd, addr string) error {
	d, err := daemon.Start(ctx, cmd, func(ctx context.Context) error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
		if err == nil {
			err = conn.Close()
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", cmd.Path, err)
	}
	f.daemons = append(f.daemons, d)
	return nil
}

// add starts a program and measures it in each round.
func (f *field) add(ctx context.Context, name string, cmd *exec.Cmd, addr string) error {
	if err := f.start(ctx, cmd, addr); err != nil {
		return err
	}
	f.servers = append(f.servers, &server{name: name, addr: addr, process: cmd.Process})
	return nil
}

// startOwn starts this program as a server.
func (f *field) startOwn(ctx context.Context, name, kind, redis string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	_, _, addr, err := daemon.FreeAddr()
	if err != nil {
		return err
	}
	args := []string{"serve", "-kind", kind, "-addr", addr, "-redis", redis}
	if f.o.profile != "" {
		file := kind + "-memory.pprof"
		if redis != "" {
			file = kind + "-redis.pprof"
		}
		args = append(args, "-profile", filepath.Join(f.o.profile, file))
	}
	return f.add(ctx, name, exec.Command(program, args...), addr)
}

// startOriginal starts envoyproxy/ratelimit without statistics, which cost it time.
func (f *field) startOriginal(ctx context.Context, name, pool string) error {
	if f.o.original == "" {
		f.o.original = filepath.Join(f.dir, "ratelimit")
		build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", f.o.original, "github.com/envoyproxy/ratelimit/src/service_cmd")
		build.Dir = "../proof/envoy/original"
		build.Env = append(os.Environ(), "GOWORK=off")
		if output, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("build envoyproxy/ratelimit: run in the directory bench, or set -ratelimit: %w\n%s", err, output)
		}
	}
	config := filepath.Join(f.dir, "runtime", "ratelimit", "config")
	if err := os.MkdirAll(config, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(config, "bench.yaml"), []byte(configText), 0o600); err != nil {
		return err
	}
	settings := []string{
		"RUNTIME_ROOT=" + filepath.Join(f.dir, "runtime"), "RUNTIME_SUBDIRECTORY=ratelimit", "RUNTIME_WATCH_ROOT=false",
		"REDIS_SOCKET_TYPE=tcp", "REDIS_URL=" + f.redis, "REDIS_POOL_SIZE=" + pool, "USE_STATSD=false", "DISABLE_STATS=true",
	}
	addr := ""
	for _, prefix := range []string{"", "GRPC_", "DEBUG_"} {
		host, port, free, err := daemon.FreeAddr()
		if err != nil {
			return err
		}
		settings = append(settings, prefix+"HOST="+host, prefix+"PORT="+port)
		if prefix == "GRPC_" {
			addr = free
		}
	}
	cmd := exec.Command(f.o.original)
	cmd.Env = append(os.Environ(), settings...)
	return f.add(ctx, name, cmd, addr)
}
