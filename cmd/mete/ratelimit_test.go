// SPDX-License-Identifier: Apache-2.0

//go:build !windows

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/metehq/mete/internal/proctest"
)

const envoyExample = "../../examples/envoy/ratelimit"

// linkRatelimit returns a command that runs mete through a link with the name ratelimit, and no variables of the
// test except PATH.
func linkRatelimit(t *testing.T, environ ...string) *exec.Cmd {
	t.Helper()
	program, err := exec.LookPath("mete")
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "ratelimit")
	if err := os.Symlink(program, link); err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs(envoyExample)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(link)
	cmd.Env = slices.Concat([]string{"PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0", "RUNTIME_ROOT=" + root}, environ)
	return cmd
}

// ratelimitPorts are free addresses of the service.
type ratelimitPorts struct{ grpc, http, debug, metrics string }

func freePorts(t *testing.T) (ports ratelimitPorts, environ []string) {
	t.Helper()
	ports = ratelimitPorts{proctest.FreeAddr(t), proctest.FreeAddr(t), proctest.FreeAddr(t), proctest.FreeAddr(t)}
	port := func(addr string) string { return addr[strings.LastIndexByte(addr, ':')+1:] }
	return ports, []string{
		"GRPC_HOST=127.0.0.1", "GRPC_PORT=" + port(ports.grpc), "HOST=127.0.0.1", "PORT=" + port(ports.http),
		"DEBUG_PORT=" + port(ports.debug), "USE_PROMETHEUS=true", "PROMETHEUS_ADDR=" + ports.metrics,
	}
}

// TestRatelimit_Program starts the program from its environment with a real Redis, uses all ports, and stops it with
// a call in flight.
func TestRatelimit_Program(t *testing.T) {
	redis := proctest.StartRedis(t)
	ports, environ := freePorts(t)
	p := proctest.Start(t, linkRatelimit(t, append(environ,
		"REDIS_SOCKET_TYPE=tcp", "REDIS_URL="+redis.Addr, "REDIS_TIMEOUT=1m", "GRPC_PROT=1")...))
	p.WaitReady(serverTimeout, proctest.HTTP("http://"+ports.http+"/healthcheck"))
	if want := "GRPC_PROT is not a setting: did you mean GRPC_PORT?"; !strings.Contains(p.Output(), want) {
		t.Errorf("the log lacks %q:\n%s", want, p.Output())
	}

	conn, err := grpc.NewClient(ports.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ask := func() (ratelimitv3.RateLimitResponse_Code, error) {
		response, err := ratelimitv3.NewRateLimitServiceClient(conn).ShouldRateLimit(t.Context(), &ratelimitv3.RateLimitRequest{
			Domain: "shop", Descriptors: []*commonv3.RateLimitDescriptor{{Entries: []*commonv3.RateLimitDescriptor_Entry{
				{Key: "remote_address", Value: "192.0.2.1"}, {Key: "path", Value: "/"},
			}}},
		})
		return response.GetOverallCode(), err
	}
	if code, err := ask(); code != ratelimitv3.RateLimitResponse_OK || err != nil {
		t.Errorf("first call: %v, %v", code, err)
	}
	const body = `{"domain": "shop", "descriptors": [{"entries": [{"key": "remote_address", "value": "192.0.2.1"}, {"key": "path", "value": "/"}]}]}`
	if got := fetch("http://"+ports.http+"/json", []string{body}); got != "200" {
		t.Errorf("/json: %s", got)
	}
	for url, want := range map[string]string{
		ports.debug + "/rlconfig":  "shop.remote_address",
		ports.debug + "/stats":     "ratelimit.service.rate_limit.shop.remote_address.path.total_hits: 2\n",
		ports.metrics + "/metrics": `ratelimit_service_rate_limit_total_hits{domain="shop",key1="remote_address",key2="path"} 2`,
	} {
		if text := read(t, "http://"+url); !strings.Contains(text, want) {
			t.Errorf("%s lacks %q:\n%s", url, want, text)
		}
	}

	type answer struct {
		code ratelimitv3.RateLimitResponse_Code
		err  error
	}
	answered := make(chan answer, 1)
	doRedis(t, redis, "CLIENT", "PAUSE", "600000", "WRITE")
	go func() {
		code, err := ask()
		answered <- answer{code, err}
	}()
	wait(t, "Redis holds the call", func(context.Context) error {
		info, err := redis.Do("INFO", "clients")
		if err == nil && !strings.Contains(info, "blocked_clients:1") {
			err = errors.New(info)
		}
		return err
	})
	p.Signal(syscall.SIGTERM)
	wait(t, "/healthcheck fails", func(context.Context) error {
		if got := fetch("http://"+ports.http+"/healthcheck", nil); got != "500" {
			return errors.New(got)
		}
		return nil
	})
	doRedis(t, redis, "CLIENT", "UNPAUSE")
	if got := <-answered; got.err != nil || got.code != ratelimitv3.RateLimitResponse_OVER_LIMIT {
		t.Errorf("the call in flight: %v, %v; want OVER_LIMIT, because it is the third", got.code, got.err)
	}
	<-p.Done()
	if err := p.Stop(); err != nil {
		t.Errorf("SIGTERM: %v", err)
	}
}

// TestRatelimit_Mistakes runs the program with invalid settings. It exits with status 2 before it opens a port.
func TestRatelimit_Mistakes(t *testing.T) {
	for _, c := range []struct {
		environ []string
		want    string
	}{
		{[]string{"METE_STORE=memory", "GRPC_PORT=http", "LOG_LEVEL=loud"},
			"mete ratelimit: GRPC_PORT=\"http\": must be a whole number from 0 to 65535\n" +
				"mete ratelimit: LOG_LEVEL=\"loud\": must be trace or debug or info or warn or warning or error or fatal or panic\n"},
		{nil, "mete ratelimit: REDIS_URL is not set: set it to HOST:PORT, or set METE_STORE"},
		{[]string{"METE_STORE=memory", "RUNTIME_ROOT=/nowhere"}, "/nowhere"},
	} {
		output, err := linkRatelimit(t, c.environ...).CombinedOutput()
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 2 || !strings.Contains(string(output), c.want) {
			t.Errorf("%q: %v, want exit status 2 and %q:\n%s", c.environ, err, c.want, output)
		}
	}
}

// TestRatelimit_Check validates variables and files without opening a port.
func TestRatelimit_Check(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "config")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "a.yaml")
	for _, c := range []struct{ text, want string }{
		{"domain: a\nunit: day", "mete ratelimit: warning: " + file + ":2:1: key \"unit\" has no effect here\nthe variables and the configuration are ok\n"},
		{"domain: ''", "mete ratelimit: dropin: " + file + ":1:9: the domain is missing or empty: set domain to the domain of the rate limit filter in Envoy\n"},
	} {
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := linkRatelimit(t, "METE_STORE=memory", "RUNTIME_ROOT="+filepath.Dir(dir))
		cmd.Args = append(cmd.Args, "--check")
		if output, _ := cmd.CombinedOutput(); string(output) != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.text, output, c.want)
		}
	}
}

// wait waits until the probe succeeds.
func wait(t *testing.T, event string, probe proctest.Probe) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), serverTimeout)
	defer cancel()
	if err := proctest.Poll(ctx, probe); err != nil {
		t.Fatalf("%s: %v", event, err)
	}
}

func doRedis(t *testing.T, redis *proctest.Redis, args ...string) {
	t.Helper()
	if _, err := redis.Do(args...); err != nil {
		t.Fatal(fmt.Errorf("%q: %w", args, err))
	}
}

// read returns the body of a page.
func read(t *testing.T, url string) string {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
