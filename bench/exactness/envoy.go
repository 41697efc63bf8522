// SPDX-License-Identifier: Apache-2.0

package exactness

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/metehq/mete/bench/exactness/clock"
	"github.com/metehq/mete/bench/exactness/wire"
	"github.com/metehq/mete/internal/proctest"
)

// An envoyNode is envoyproxy/ratelimit. Limit N has the descriptor limitN.
type envoyNode struct {
	client  ratelimitv3.RateLimitServiceClient
	conn    *grpc.ClientConn
	config  string // path
	debug   string // host:port
	process *proctest.Process
}

func startEnvoy(t testing.TB, c *clock.Clock, s wire.Setup) (Node, error) {
	program, err := buildEnvoy()
	if err != nil {
		return nil, err
	}
	root := filepath.Join(t.TempDir(), "runtime")
	dir := filepath.Join(root, "ratelimit", "config")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	n := &envoyNode{config: filepath.Join(dir, "bench.yaml"), debug: proctest.FreeAddr(t)}
	if err := n.write(s.Limits); err != nil {
		return nil, err
	}
	addr := proctest.FreeAddr(t)
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), c.Environ()...)
	cmd.Env = append(cmd.Env,
		"RUNTIME_ROOT="+root, "RUNTIME_SUBDIRECTORY=ratelimit", "RUNTIME_WATCH_ROOT=false", "LOG_LEVEL=error",
		"REDIS_SOCKET_TYPE=tcp", "USE_STATSD=false", "DISABLE_STATS=true")
	if len(s.Sentinels) > 0 {
		cmd.Env = append(cmd.Env, "REDIS_TYPE=SENTINEL", "REDIS_URL="+strings.Join(append([]string{s.Master}, s.Sentinels...), ","))
	} else {
		cmd.Env = append(cmd.Env, "REDIS_URL="+s.Redis)
	}
	for prefix, addr := range map[string]string{"": proctest.FreeAddr(t), "GRPC_": addr, "DEBUG_": n.debug} {
		host, port, _ := strings.Cut(addr, ":")
		cmd.Env = append(cmd.Env, prefix+"HOST="+host, prefix+"PORT="+port)
	}
	n.process = proctest.Start(t, cmd)
	n.process.WaitReady(time.Minute, proctest.TCP(addr))
	n.conn, err = grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	n.client = ratelimitv3.NewRateLimitServiceClient(n.conn)
	return n, n.awaitConfig(s.Limits)
}

func (n *envoyNode) write(limits []wire.Limit) error {
	text := "domain: bench\ndescriptors:\n"
	for i, l := range limits {
		text += fmt.Sprintf("- {key: limit%d, rate_limit: {unit: %s, requests_per_unit: %d}}\n", i, unit(l), l.Capacity)
	}
	return os.WriteFile(n.config, []byte(text), 0o644)
}

func unit(l wire.Limit) string {
	if l.Period == time.Minute {
		return "minute"
	}
	return "second"
}

// awaitConfig waits until the server has read its configuration. It watches the directory.
func (n *envoyNode) awaitConfig(limits []wire.Limit) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return proctest.Poll(ctx, func(context.Context) error {
		response, err := http.Get("http://" + n.debug + "/rlconfig")
		if err != nil {
			return err
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if want := "unit=" + strings.ToUpper(unit(limits[0])); err == nil && !strings.Contains(string(text), want) {
			err = fmt.Errorf("the configuration is %q, want %q in it", text, want)
		}
		return err
	})
}

func (n *envoyNode) Take(ctx context.Context, keys []string) (bool, time.Duration, error) {
	r := &ratelimitv3.RateLimitRequest{Domain: "bench"}
	for i, key := range keys {
		if key != "" {
			entry := &commonv3.RateLimitDescriptor_Entry{Key: fmt.Sprint("limit", i), Value: key}
			r.Descriptors = append(r.Descriptors, &commonv3.RateLimitDescriptor{Entries: []*commonv3.RateLimitDescriptor_Entry{entry}})
		}
	}
	response, err := n.client.ShouldRateLimit(ctx, r)
	if err != nil {
		return false, wire.NoRetry, err
	}
	retry := wire.NoRetry
	for _, status := range response.Statuses {
		if status.Code == ratelimitv3.RateLimitResponse_OVER_LIMIT {
			retry = max(retry, status.DurationUntilReset.AsDuration())
		}
	}
	return response.OverallCode == ratelimitv3.RateLimitResponse_OK, retry, nil
}

func (n *envoyNode) Change(limits []wire.Limit) error {
	if err := n.write(limits); err != nil {
		return err
	}
	return n.awaitConfig(limits)
}

// ContenderVersion returns the version in the program's build information.
func (n *envoyNode) ContenderVersion() string {
	program, err := buildEnvoy()
	if err != nil {
		return ""
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return ""
	}
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if m.Path == "github.com/envoyproxy/ratelimit" {
			return m.Version
		}
	}
	return ""
}

func (n *envoyNode) Close() {
	_ = n.conn.Close()
	n.process.Kill()
}
