// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/metehq/mete/internal/testkit"
	"github.com/metehq/mete/proof/meted"
)

const (
	rollingConfig = "policy: policy.yaml\nupstream: %s\ntimeouts: {notice: 3s, drain: 20s}\n"
	rollingPolicy = "rules: [{name: all, limit_keys: [], algorithm: token_bucket, algorithm_config: {rps: 100000, burst: 100000}}]\n"

	rollingClients = 4
	lookEvery      = 50 * time.Millisecond // at /readyz, which is well within the notice
)

// A balancer sends requests in turn to the servers that were ready at their last check. It keeps
// connections open, like a Kubernetes service.
type balancer struct {
	mu    sync.Mutex
	ready []*meted.Server
	turn  int
}

func (b *balancer) next() *meted.Server {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.ready) == 0 {
		return nil
	}
	b.turn++
	return b.ready[b.turn%len(b.ready)]
}

// pollReady asks all servers whether they are ready.
func (b *balancer) pollReady(all []*meted.Server) {
	var ready []*meted.Server
	for _, s := range all {
		resp, err := http.Get(s.URL + "/readyz")
		if err != nil {
			continue
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			ready = append(ready, s)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ready = ready
}

// TestRollingRestart replaces each of two gateways under load, one after the other. No
// request may fail.
func TestRollingRestart(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "served") }))
	t.Cleanup(up.Close)
	startOne := func() *meted.Server {
		dir := t.TempDir()
		write(t, dir+"/policy.yaml", rollingPolicy)
		return meted.Start(t, fmt.Sprintf(rollingConfig, up.URL), dir)
	}
	servers := []*meted.Server{startOne(), startOne()}
	var b balancer
	b.pollReady(servers)

	var clients sync.WaitGroup
	var served atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for range rollingClients {
		clients.Go(func() {
			for ctx.Err() == nil {
				if err := askOne(b.next()); err != nil {
					t.Errorf("after %d requests: %v", served.Load(), err)
					return
				}
				served.Add(1)
			}
		})
	}
	for i := range servers {
		before := served.Load()
		testkit.Until(t, "requests are served", func() bool { return served.Load() > before+100 })
		old := servers[i]
		fresh := startOne()
		old.Process.Signal(syscall.SIGTERM)
		ended := false
		for !ended {
			select {
			case <-old.Process.Done():
				ended = true
			case <-time.After(lookEvery):
				b.pollReady(append([]*meted.Server{fresh}, servers...))
			}
		}
		if err := old.Process.Stop(); err != nil {
			t.Errorf("a server ended with %v", err)
		}
		servers[i] = fresh
		b.pollReady(servers)
	}
	stop()
	clients.Wait()
	t.Logf("%d requests, none failed", served.Load())
}

// askOne sends one request by the server.
func askOne(s *meted.Server) error {
	if s == nil {
		return fmt.Errorf("no server is ready")
	}
	resp, err := http.Get(s.URL + "/")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || string(body) != "served" {
		return fmt.Errorf("status %s, body %q, %v", resp.Status, body, err)
	}
	return nil
}
