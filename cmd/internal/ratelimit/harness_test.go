// SPDX-License-Identifier: Apache-2.0

package ratelimit_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/metehq/mete/cmd/internal/ratelimit"
)

// timeout bounds the wait for an event, on a loaded machine too.
const timeout = time.Minute

const (
	over = ratelimitv3.RateLimitResponse_OVER_LIMIT
	ok   = ratelimitv3.RateLimitResponse_OK
)

const basic = `
domain: shop
descriptors:
  - key: path
    rate_limit: {unit: hour, requests_per_unit: 2}
`

// ports make a service listen on free ports, without Redis.
var ports = []string{
	"METE_STORE=memory", "GRPC_HOST=127.0.0.1", "GRPC_PORT=0", "HOST=127.0.0.1", "PORT=0", "DEBUG_PORT=0",
	"USE_PROMETHEUS=true", "PROMETHEUS_ADDR=127.0.0.1:0",
}

// A lockedLog collects log lines.
type lockedLog struct {
	mu   sync.Mutex
	text strings.Builder
	grew chan struct{}
}

func newLockedLog() *lockedLog { return &lockedLog{grew: make(chan struct{}, 1)} }

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.grew <- struct{}{}:
	default:
	}
	return l.text.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// wait waits until the log contains text n times.
func (l *lockedLog) wait(t *testing.T, text string, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	for strings.Count(l.String(), text) < n {
		select {
		case <-l.grew:
		case <-ctx.Done():
			t.Fatalf("the log does not contain %q %d times:\n%s", text, n, l)
		}
	}
}

type running struct {
	*ratelimit.Server
	log  *lockedLog
	stop context.CancelFunc
	done chan error
}

func open(t *testing.T, environ ...string) (*ratelimit.Server, *lockedLog, error) {
	t.Helper()
	s, warnings, err := ratelimit.ReadSettings(append(ports[:len(ports):len(ports)], environ...))
	if err != nil || len(warnings) > 0 {
		t.Fatalf("settings: %v, warnings %q", err, warnings)
	}
	log := newLockedLog()
	server, err := ratelimit.Open(t.Context(), s, slog.New(slog.NewTextHandler(log, nil)))
	return server, log, err
}

// start runs a service until the end of the test.
func start(t *testing.T, environ ...string) *running {
	t.Helper()
	server, log, err := open(t, environ...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{Server: server, log: log, stop: cancel, done: make(chan error, 1)}
	go func() { r.done <- server.Run(ctx) }()
	t.Cleanup(func() { r.end(t) })
	return r
}

func (r *running) end(t *testing.T) {
	t.Helper()
	r.stop()
	select {
	case err := <-r.done:
		r.done <- err
		if err != nil {
			t.Errorf("Run: %v", err)
		}
	case <-time.After(timeout):
		t.Fatal("the service does not stop")
	}
}

// directory writes a configuration file and returns the root for RUNTIME_ROOT.
func directory(t *testing.T, text string) (root, file string) {
	t.Helper()
	root = t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "config"), 0o755); err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(root, "config", "shop.yaml")
	write(t, file, text)
	return root, file
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func dial(t *testing.T, address string, secure credentials.TransportCredentials) ratelimitv3.RateLimitServiceClient {
	t.Helper()
	if secure == nil {
		secure = insecure.NewCredentials()
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(secure))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return ratelimitv3.NewRateLimitServiceClient(conn)
}

func requestFor(path string) *ratelimitv3.RateLimitRequest {
	return &ratelimitv3.RateLimitRequest{Domain: "shop", Descriptors: []*commonv3.RateLimitDescriptor{
		{Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: "path", Value: path}}},
	}}
}

func call(t *testing.T, client ratelimitv3.RateLimitServiceClient, path string) ratelimitv3.RateLimitResponse_Code {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	response, err := client.ShouldRateLimit(ctx, requestFor(path), grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	return response.GetOverallCode()
}

func get(t *testing.T, url string) (status int, body string) {
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
	return response.StatusCode, string(text)
}
