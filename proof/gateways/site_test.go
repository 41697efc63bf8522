// SPDX-License-Identifier: Apache-2.0

//go:build linux

package gateways

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/proof/meted"
)

// A site is a gateway, the mete that it asks, and the service behind it.
type site struct {
	kind
	addr    string // of the gateway
	mete    *meted.Server
	asked   *proctest.Proxy // between gateway and mete
	service *service
}

// A setup is in what a site differs from its example.
type setup struct {
	mete   []edit // of mete.yaml
	policy []edit // of policy.yaml
	closed bool   // fail closed
	http2  bool   // speak that with clients
	behind bool   // a load balancer

	// hasty keeps the example's timeouts. They are made longer else: a busy machine
	// shall not be taken for a mete that is down.
	hasty bool
}

// start runs the example of a kind.
func start(t *testing.T, k kind, s setup) *site {
	t.Helper()
	program := proctest.Find(t, k.program, k.pkg)
	dir := copyExample(t, k)
	change(t, filepath.Join(filepath.Dir(dir), "policy.yaml"), s.policy...)
	change(t, filepath.Join(dir, "mete.yaml"), s.mete...)
	if s.closed {
		change(t, filepath.Join(dir, k.fileWith(t, dir, k.opening.from)), k.opening)
	}
	if s.behind {
		change(t, filepath.Join(dir, k.settings[len(k.settings)-1]), k.behind)
		if k.trusts.from != "" {
			change(t, filepath.Join(dir, "mete.yaml"), k.trusts)
		}
	}
	if s.http2 {
		change(t, filepath.Join(dir, k.settings[len(k.settings)-1]), k.http2)
	}
	config, err := os.ReadFile(filepath.Join(dir, "mete.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	running := &site{kind: k, addr: ownAddr(t), service: newService(t)}
	running.mete = meted.Start(t, string(config), dir)
	running.asked = proctest.StartProxy(t, running.mete.Addr)
	running.move(t, dir, s.hasty)

	cmd := exec.Command(program, k.args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir) // Caddy keeps files
	if k.program == "nginx" && os.Geteuid() == 0 {
		cmd.Args[len(cmd.Args)-1] += " user root;" // its workers must be able to read the test's files
	}
	proctest.Start(t, cmd).WaitReady(meted.Patience, proctest.TCP(running.addr))
	return running
}

// ownAddr returns a free port at an unused loopback address. Other tests run at the same time.
func ownAddr(t *testing.T) string {
	t.Helper()
	_, port, _ := strings.Cut(proctest.FreeAddr(t), ":")
	return fmt.Sprintf("127.%d.%d.%d:%s", 64+rand.IntN(64), rand.IntN(256), 1+rand.IntN(250), port)
}

// copyExample copies policy.yaml and the directory of a kind, and returns the copy
// of the directory.
func copyExample(t *testing.T, k kind) string {
	t.Helper()
	from, to := filepath.Join(meted.Root(t), "examples", "gateways"), t.TempDir()
	if err := os.CopyFS(filepath.Join(to, k.name), os.DirFS(filepath.Join(from, k.name))); err != nil {
		t.Fatal(err)
	}
	policy, err := os.ReadFile(filepath.Join(from, "policy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(to, "policy.yaml"), policy, 0o600); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(to, k.name)
}

// fileWith returns the one of the settings that has a text in it.
func (k kind) fileWith(t *testing.T, dir, text string) string {
	t.Helper()
	for _, name := range k.settings {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(content), text) {
			return name
		}
	}
	t.Fatalf("%v have no %q", k.settings, text)
	return ""
}

// change applies edits to a file that must contain their old texts.
func change(t *testing.T, path string, edits ...edit) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(content)
	for _, e := range edits {
		if !strings.Contains(text, e.from) {
			t.Fatalf("%s has no %q", path, e.from)
		}
		text = strings.ReplaceAll(text, e.from, e.to)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// move puts the addresses of this site in the place of the example's.
func (s *site) move(t *testing.T, dir string, hasty bool) {
	t.Helper()
	host, port, _ := strings.Cut(s.addr, ":")
	edits := []string{
		"127.0.0.1:8088", s.addr, "http://:8088", "http://:" + port, "bind 127.0.0.1\n", "bind " + host + "\n",
		"127.0.0.1:8080", s.asked.Addr,
		"127.0.0.1:3000", strings.TrimPrefix(s.service.URL, "http://"),
		"abns@mete", "abns@mete-" + port, // all of this machine see it
	}
	if !hasty {
		edits = append(edits, " 250ms", " 20s", " 1s", " 20s", " 250, 1000, 1000", " 20000, 20000, 20000")
	}
	for _, name := range s.settings {
		path := filepath.Join(dir, name)
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		moved := strings.NewReplacer(edits...).Replace(string(content))
		if err := os.WriteFile(path, []byte(moved), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// stop halts mete as a machine that hangs would, and waits until all of it has come to
// a halt.
func (s *site) stop(t *testing.T) {
	t.Helper()
	s.mete.Process.Pause()
	t.Cleanup(s.mete.Process.Kill) // it could not end by itself
	threads := filepath.Join("/proc", strconv.Itoa(s.mete.Process.Pid()), "task", "*", "stat")
	ctx, cancel := context.WithTimeout(context.Background(), meted.Patience)
	defer cancel()
	err := proctest.Poll(ctx, func(context.Context) error {
		stats, err := filepath.Glob(threads)
		if err != nil {
			return err
		}
		for _, path := range stats {
			stat, err := os.ReadFile(path)
			if err == nil && !strings.Contains(string(stat), ") T ") {
				return fmt.Errorf("%s still runs: %s", path, stat)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// newService runs a service on the loopback interface.
func newService(t *testing.T) *service {
	t.Helper()
	s := new(service)
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}
