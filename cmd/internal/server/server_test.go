// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/cmd/internal/server"
	"github.com/metehq/mete/internal/testkit"
)

// patience bounds every wait of these tests. Nothing waits that long.
const patience = time.Minute

// A running server, with its log.
type running struct {
	t           *testing.T
	main, admin string // URLs
	log         *testkit.Log
	server      *server.Server
	stop        context.CancelFunc
	ended       chan struct{} // closed when Run has returned
	err         error         // of Run
}

// testConfig is a configuration on free ports.
func testConfig() config.Config {
	c := config.Default()
	c.Listen, c.AdminListen = "127.0.0.1:0", "127.0.0.1:0"
	c.ReloadInterval = 10 * time.Millisecond
	return c
}

// mustURL parses a URL that is valid.
func mustURL(raw string) *url.URL {
	u, err := url.Parse(raw)
	if err != nil {
		panic(err)
	}
	return u
}

// urls parses URLs that are valid.
func urls(raw ...string) (parsed []*url.URL) {
	for _, r := range raw {
		parsed = append(parsed, mustURL(r))
	}
	return parsed
}

// start runs a server until the test ends.
func start(t *testing.T, c config.Config) *running {
	t.Helper()
	r := &running{t: t, log: new(testkit.Log), ended: make(chan struct{})}
	s, err := server.New(t.Context(), c, slog.New(slog.NewTextHandler(r.log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	r.server = s
	r.main, r.admin = "http://"+s.Addr().String(), "http://"+s.AdminAddr().String()
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	go func() {
		r.err = s.Run(ctx)
		close(r.ended)
	}()
	t.Cleanup(func() {
		stop()
		if err := r.wait(); err != nil {
			t.Errorf("Run: %v", err)
		}
		if t.Failed() {
			t.Logf("log of the server:\n%s", r.log)
		}
	})
	return r
}

// wait returns what Run does.
func (r *running) wait() error {
	r.t.Helper()
	select {
	case <-r.ended:
	case <-time.After(patience):
		r.t.Fatal("Run has not returned")
	}
	return r.err
}

// take asks for one token of the client and returns the status.
func (r *running) take(client string) int {
	r.t.Helper()
	status, _ := post(r.t, r.main+"/v1/take?status=429", strings.NewReader(`{"attributes":{"ip:address":"`+client+`"}}`))
	return status
}

func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	return read(t, resp)
}

func post(t *testing.T, url string, body io.Reader) (int, string) {
	t.Helper()
	resp, err := http.Post(url, "application/json", body)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	return read(t, resp)
}

func read(t *testing.T, resp *http.Response) (int, string) {
	t.Helper()
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, string(text)
}

// write writes a file by renaming a new one over it.
func write(t *testing.T, path, text string) {
	t.Helper()
	next := path + ".next"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
}

// policyFile returns the path of a new policy file.
func policyFile(t *testing.T, text string) string {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, path, text)
	return path
}

// burst is a policy of one rule whose buckets hold so many tokens, and refill
// none while a test runs. A slow store decides, too.
func burst(tokens string) string {
	return `rules:
  - name: client
    limit_keys: ["ip:address"]
    deadline: 10s
    algorithm: token_bucket
    algorithm_config: { rate: 1/1d, burst: ` + tokens + ` }
`
}
