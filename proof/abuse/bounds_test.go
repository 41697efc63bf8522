// SPDX-License-Identifier: Apache-2.0

package abuse_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/internal/testkit"
	"github.com/metehq/mete/proof/meted"
)

// Beyond max_connections new ones wait, and come in as those before are cut off.
func TestAbuse_Connections(t *testing.T) {
	t.Parallel()
	const most = 20
	s := start(t, perAddress("10"), impatient+fmt.Sprintf("max_connections: %d\n", most))
	for range 3 * most {
		dial(t, s.Addr) // and sends nothing
	}
	if got := ask(t, http.MethodGet, s.AdminURL+"/livez", "").status; got != http.StatusOK {
		t.Errorf("/livez at the admin address, with the main one full: status %d, want 200", got)
	}
	if got := ask(t, http.MethodGet, s.URL+"/livez", "").status; got != http.StatusOK {
		t.Errorf("/livez behind %d silent connections: status %d, want 200 once they are cut off", 3*most, got)
	}
}

// Beyond max_in_flight requests are answered at once, with 503.
func TestAbuse_RequestsInFlight(t *testing.T) {
	t.Parallel()
	const most = 5
	release := make(chan struct{})
	var held atomic.Int64
	upstream := serve(t, func(http.ResponseWriter, *http.Request) {
		held.Add(1)
		<-release
	})
	s := start(t, perAddress("1000"), fmt.Sprintf("max_in_flight: %d\nupstream: %s\n", most, upstream.URL))
	var waiting sync.WaitGroup
	for range most {
		waiting.Go(func() {
			if got := ask(t, http.MethodGet, s.URL, "").status; got != http.StatusOK {
				t.Errorf("a request within the bound: status %d, want 200", got)
			}
		})
	}
	testkit.Eventually(t, "the server is at its bound", func() error {
		if n := held.Load(); n < most {
			return fmt.Errorf("%d requests are held", n)
		}
		return nil
	})
	for range 50 {
		if got := ask(t, http.MethodGet, s.URL, ""); got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" {
			t.Errorf("a request beyond the bound: %d %q, want 503 and Retry-After", got.status, got.header)
		}
	}
	mustLive(t, s, "the bound")
	close(release)
	waiting.Wait()
	if n := held.Load(); n != most {
		t.Errorf("%d requests reached the upstream, want %d", n, most)
	}
	if got := ask(t, http.MethodGet, s.URL, "").status; got != http.StatusOK {
		t.Errorf("afterwards: status %d, want 200", got)
	}
}

// A server without free file descriptors stays up and logs it a few times. Later it accepts connections
// again.
func TestAbuse_NoFileDescriptors(t *testing.T) {
	const descriptors = 64
	addr, adminAddr, dir := proctest.FreeAddr(t), proctest.FreeAddr(t), t.TempDir()
	write(t, filepath.Join(dir, "policy.json"), perAddress("1"))
	cmd := exec.Command("sh", "-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, descriptors), meted.Program(t),
		"serve", "--policy", "policy.json", "--listen", addr, "--admin-listen", adminAddr)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "XDG_RUNTIME_DIR="+t.TempDir())
	process := proctest.Start(t, cmd)
	process.WaitReady(meted.Patience, func(context.Context) error {
		if !strings.Contains(process.Output(), "mete is listening on ") {
			return errors.New("the log has no line about the listener")
		}
		return nil
	})
	url := "http://" + addr
	if got := ask(t, http.MethodPost, url+"/v1/take?status=429", takeBody("ip:address", "192.0.2.1")).status; got != http.StatusOK {
		t.Fatalf("before: status %d, want 200", got)
	}
	client.CloseIdleConnections()
	var crowd []net.Conn
	for range 3 * descriptors {
		crowd = append(crowd, dial(t, addr))
	}
	testkit.Eventually(t, "descriptors run out", func() error {
		if !strings.Contains(process.Output(), "too many open files") {
			return errors.New("it has not said so")
		}
		return nil
	})
	for _, conn := range crowd {
		conn.Close()
	}
	if got := ask(t, http.MethodPost, url+"/v1/take?status=429", takeBody("ip:address", "192.0.2.1")).status; got != http.StatusTooManyRequests {
		t.Errorf("afterwards: status %d, want 429: nothing was forgotten", got)
	}
	if n := strings.Count(process.Output(), "\n"); n > 500 {
		t.Errorf("%d lines of log, want a few", n)
	}
	if err := process.Stop(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}
