// SPDX-License-Identifier: Apache-2.0

package outcomes_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/internal/testkit"
	"github.com/metehq/mete/proof/meted"
)

func TestMain(m *testing.M) { meted.Main(m) }

// nginx asks for a password at /login, drops the connection of /dead without an answer, and sends /large slowly.
const nginx = `worker_processes 1;
pid nginx.pid;
error_log stderr;
events { worker_connections 512; }
http {
	access_log off;
	client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
	server {
		listen $ADDR;
		root site;
		location = /login { auth_basic "login"; auth_basic_user_file users; }
		location = /dead { return 444; }
		location = /large { limit_rate 1000; }
		location = /export { limit_rate 4000; } # takes 40 minutes
		location = /crash { return 444; }
		location = /socket { proxy_pass http://$TICKER; proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; }
	}
}
`

// Nothing refills during the test, and the deadline suffices on a slow machine.
const rules = `{"rules": [
	{"name": "guesses", "match": {"path": "/login"}, "limit_keys": ["ip:address"], "charge_on": {"status": [401]}, "deadline": "10s", "rate": "5/1d", "burst": 5},
	{"name": "crashes", "match": {"path": "/dead"}, "limit_keys": ["ip:address"], "charge_on": {"status": ["5xx"]}, "deadline": "10s", "rate": "3/1d", "burst": 3},
	{"name": "errors", "match": {"path": "/large"}, "limit_keys": ["ip:address"], "charge_on": {"status": ["4xx"]}, "deadline": "10s", "rate": "5/1d", "burst": 5},
	{"name": "bytes", "group": "bytes", "match": {"path": "/large"}, "limit_keys": ["ip:address"], "charge_on": {"response_bytes": 1000}, "deadline": "10s", "rate": "1000/1d", "burst": 1000},
	{"name": "exports", "match": {"path": ["/export", "/crash", "/socket"]}, "limit_keys": ["path"], "deadline": "10s", "algorithm": "concurrency", "max": 2, "lease": "5s"}]}`

const largeSize = 100_000

func startNginx(t *testing.T) (addr string) {
	t.Helper()
	dir := t.TempDir()
	addr = proctest.FreeAddr(t)
	for name, text := range map[string]string{
		"nginx.conf": strings.NewReplacer("$ADDR", addr, "$TICKER", startTicker(t)).Replace(nginx), "users": "alice:{PLAIN}secret\n",
		"site/login": "welcome\n", "site/large": strings.Repeat("x", largeSize), "site/export": strings.Repeat("x", 10_000_000),
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	directives := "daemon off;"
	if os.Geteuid() == 0 {
		directives += " user root;" // the workers read files of the test
	}
	cmd := exec.Command(proctest.Find(t, "nginx", "nginx"), "-p", dir, "-c", "nginx.conf", "-e", "stderr", "-g", directives)
	proctest.Start(t, cmd).WaitReady(meted.Patience, proctest.TCP(addr))
	return addr
}

// A gateway sends requests to a mete in front of nginx.
type gateway struct {
	*meted.Server
	t *testing.T
}

// status returns the status of a request with a password.
func (g gateway) status(path, password string) int {
	req, err := http.NewRequestWithContext(g.t.Context(), http.MethodGet, g.URL+path, nil)
	if err != nil {
		g.t.Error(err)
		return 0
	}
	req.SetBasicAuth("alice", password)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		g.t.Error(err)
		return 0
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		g.t.Error(err)
	}
	return res.StatusCode
}

// left returns the tokens that a rule has left for a request to path.
func (g gateway) left(path, rule string) (float64, error) {
	body := fmt.Sprintf(`{"attributes": {"ip:address": "127.0.0.1", "path": %q}}`, path)
	req, err := http.NewRequestWithContext(g.t.Context(), http.MethodPost, g.AdminURL+"/v1/peek", strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+g.Token())
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	var decision struct {
		Limits []struct {
			Rule      string  `json:"rule"`
			Remaining float64 `json:"remaining"`
		} `json:"limits"`
	}
	text, err := io.ReadAll(res.Body)
	if err == nil {
		err = json.Unmarshal(text, &decision)
	}
	if err != nil {
		return 0, err
	}
	for _, l := range decision.Limits {
		if l.Rule == rule {
			return l.Remaining, nil
		}
	}
	return 0, fmt.Errorf("no limit of rule %s in %s", rule, text)
}

func TestOutcomes(t *testing.T) {
	redis := proctest.StartRedis(t)
	for name, store := range map[string]string{
		"memory": "memory:", "redis": "redis://" + redis.Addr + "?timeout=1m", "postgres": proctest.PostgresURL(t) + "&timeout=1m&schema=" + proctest.PostgresSchema(t),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "policy.json"), []byte(rules), 0o600); err != nil {
				t.Fatal(err)
			}
			g := gateway{meted.Start(t, "policy: policy.json\nupstream: http://"+startNginx(t)+fmt.Sprintf("\nstore: %q\n", store), dir), t}
			testPasswords(t, g)
			testUpstreamDies(t, g)
			testClientLeaves(t, g)
			testSlots(t, g)
			testSlotsOfCrashes(t, g)
			if name != "memory" { // package proxy tests it with a virtual clock, and two tests run in parallel
				testLongSockets(t, g)
			}
		})
	}
}

// Right passwords cost nothing, and of 64 parallel wrong ones five reach nginx.
func testPasswords(t *testing.T, g gateway) {
	for range 8 {
		if status := g.status("/login", "secret"); status != http.StatusOK {
			t.Fatalf("a right password: %d", status)
		}
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	seen := map[int]int{}
	for range 64 {
		all.Go(func() {
			status := g.status("/login", "wrong")
			mu.Lock()
			defer mu.Unlock()
			seen[status]++
		})
	}
	all.Wait()
	if want := map[int]int{http.StatusUnauthorized: 5, http.StatusTooManyRequests: 59}; fmt.Sprint(seen) != fmt.Sprint(want) {
		t.Errorf("64 wrong passwords: %v, want %v", seen, want)
	}
}

// The gateway's own 502 is an outcome too.
func testUpstreamDies(t *testing.T, g gateway) {
	var got []int
	for range 5 {
		got = append(got, g.status("/dead", ""))
	}
	if want := []int{502, 502, 502, 429, 429}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("an upstream that hangs up: %v, want %v", got, want)
	}
}

// A client that leaves in the middle of a response pays for the bytes until then, and the outcome is the status that it saw.
func testClientLeaves(t *testing.T, g gateway) {
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.URL+"/large", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(res.Body, make([]byte, 1000)); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%d, %v", res.StatusCode, err)
	}
	leave()
	res.Body.Close()
	testkit.Eventually(t, "the request is refunded", func() error {
		errors, err := g.left("/large", "errors")
		if err == nil && errors != 5 {
			err = fmt.Errorf("%v of 5 tokens are left", errors)
		}
		return err
	})
	const all = 1000 - largeSize/1000
	testkit.Eventually(t, "the bytes are charged", func() error {
		bytes, err := g.left("/large", "bytes")
		if err == nil && (bytes >= 1000 || bytes <= all) {
			err = fmt.Errorf("%v tokens are left, want more than %d and less than 1000", bytes, all)
		}
		return err
	})
}
