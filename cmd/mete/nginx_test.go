// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/metehq/mete/internal/proctest"
)

const (
	exampleDir    = "../../examples/nginx-upstream"
	examplePolicy = exampleDir + "/policy.yaml"
	exampleListen = "127.0.0.1:8088" // in its nginx.conf

	startTimeout = time.Minute // nothing takes that long
)

// TestNginx_ReplayOfItsLog sends traffic through nginx without limits, then replays its log with the
// example policy. Every decision must equal the rational oracle's.
func TestNginx_ReplayOfItsLog(t *testing.T) {
	mete := proctest.Build(t, ".")
	site := startNginx(t)
	traffic := drive(t, site.url)
	log := site.stop()

	if traffic.denied() != 0 {
		t.Errorf("%d answers of nginx alone are not 200", traffic.denied())
	}
	lines := countByAddress(log)
	for addr, c := range traffic.byAddress() {
		if addr == floodAddr { // wrk does not count what it cuts off at its end
			c.allowed = max(c.allowed, lines[addr])
		}
		if lines[addr] != c.allowed {
			t.Errorf("%s: nginx logged %d requests, the client had %d answers", addr, lines[addr], c.allowed)
		}
	}

	allowed := replay(t, mete, site.logPath())
	if len(allowed) != len(log) {
		t.Fatalf("replay printed %d decisions for %d lines", len(allowed), len(log))
	}
	oracle := newOracle()
	got := map[string]int{}
	for i, entry := range log {
		if want := oracle.take(entry); allowed[i] != want {
			t.Fatalf("line %d: allowed %v, want %v: %+v", i+1, allowed[i], want, entry)
		}
		if allowed[i] {
			got[entry.addr]++
		}
	}
	for _, addr := range append(downloaders, floodAddr) {
		if got[addr] != downloadBurst {
			t.Errorf("%s: replay allows %d of %d downloads, want %d", addr, got[addr], lines[addr], downloadBurst)
		}
	}
	t.Logf("%d lines of %d addresses, %d allowed", len(log), len(lines), sum(got))
}

// TestNginx_LiveBehindMete sends the same traffic to the same nginx through
// mete, and compares what the clients saw with the limits and with nginx's log.
func TestNginx_LiveBehindMete(t *testing.T) {
	mete := proctest.Build(t, ".")
	site := startNginx(t)
	gateway, url := startGateway(t, mete, site.url)
	traffic := drive(t, url)
	if err := gateway.Stop(); err != nil {
		t.Errorf("mete serve ended with %v", err)
	}
	log := site.stop()

	// The log contains exactly the allowed requests.
	lines := countByAddress(log)
	seen := traffic.byAddress()
	for addr, c := range seen {
		if lines[addr] != c.allowed {
			t.Errorf("%s: nginx logged %d requests, mete let %d through", addr, lines[addr], c.allowed)
		}
		delete(lines, addr)
	}
	for addr, n := range lines {
		t.Errorf("%s: nginx logged %d requests of a client that sent none", addr, n)
	}

	// A download a minute comes back: none within this test.
	for _, addr := range append(downloaders, floodAddr) {
		c := seen[addr]
		if c.allowed != downloadBurst || c.denied == 0 {
			t.Errorf("%s: %d downloads allowed and %d denied, want %d allowed", addr, c.allowed, c.denied, downloadBurst)
		}
	}
	// The bucket of pages refills while it is used, from full.
	checkBucket(t, "pages", traffic.reader, pageBurst, pageRate)
	// The site's bucket refills too, after the other clients used it.
	checkRefill(t, "site", traffic.strangers, siteRate)
	checkBound(t, "site", traffic, siteBurst, siteRate)
	t.Logf("%d addresses, %d allowed, %d denied", len(seen), len(log), traffic.denied())
}

// An nginxSite is a running nginx with the example's configuration and files.
type nginxSite struct {
	t       *testing.T
	url     string
	dir     string
	process *proctest.Process
}

func startNginx(t *testing.T) *nginxSite {
	t.Helper()
	program := proctest.Find(t, "nginx", "nginx")
	site := &nginxSite{t: t, dir: t.TempDir()}
	if err := os.CopyFS(site.dir, os.DirFS(exampleDir)); err != nil {
		t.Fatal(err)
	}
	addr := proctest.FreeAddr(t)
	site.url = "http://" + addr
	rewrite(t, filepath.Join(site.dir, "nginx.conf"), exampleListen, addr)

	directives := "daemon off;"
	if os.Geteuid() == 0 {
		directives += " user root;" // its workers must be able to read the test's files
	}
	cmd := exec.Command(program, "-p", site.dir, "-c", "nginx.conf", "-e", "stderr", "-g", directives)
	site.process = proctest.Start(t, cmd)
	site.process.WaitReady(startTimeout, proctest.TCP(addr))
	return site
}

func (s *nginxSite) logPath() string { return filepath.Join(s.dir, "access.log") }

// stop ends nginx after the requests in flight and returns its log.
func (s *nginxSite) stop() []logEntry {
	s.t.Helper()
	s.process.Signal(syscall.SIGQUIT)
	select {
	case <-s.process.Done():
	case <-time.After(startTimeout):
		s.t.Fatal("nginx did not end")
	}
	text, err := os.ReadFile(s.logPath())
	if err != nil {
		s.t.Fatal(err)
	}
	return parseLog(s.t, string(text))
}

// startGateway starts mete serve in front of upstream and returns its URL.
func startGateway(t *testing.T, mete, upstream string) (*proctest.Process, string) {
	t.Helper()
	policy, err := filepath.Abs(examplePolicy)
	if err != nil {
		t.Fatal(err)
	}
	addr, admin := proctest.FreeAddr(t), proctest.FreeAddr(t)
	p := proctest.Start(t, exec.Command(mete, "serve", "--policy", policy, "--upstream", upstream,
		"--listen", addr, "--admin-listen", admin))
	p.WaitReady(startTimeout, proctest.HTTP("http://"+admin+"/readyz"))
	return p, "http://" + addr
}

// replay returns the decision that mete replay prints for each line of a log.
func replay(t *testing.T, mete, logPath string) []bool {
	t.Helper()
	cmd := exec.Command(mete, "replay", "--policy", examplePolicy, "--format", "json", logPath)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("mete replay: %v\n%s", err, stderr.String())
	}
	var allowed []bool
	for line := range bytes.Lines(output) {
		var decision struct{ Allowed *bool }
		if err := json.Unmarshal(line, &decision); err != nil || decision.Allowed == nil {
			t.Fatalf("line %d of mete replay is no decision: %q", len(allowed)+1, line)
		}
		allowed = append(allowed, *decision.Allowed)
	}
	return allowed
}

// rewrite replaces the only occurrence of old in a file.
func rewrite(t *testing.T, path, old, new string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), old); n != 1 {
		t.Fatalf("%s says %q %d times, want once", path, old, n)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), old, new, 1)), 0o600); err != nil {
		t.Fatal(fmt.Errorf("rewrite: %w", err))
	}
}
