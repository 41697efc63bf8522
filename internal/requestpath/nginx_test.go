// SPDX-License-Identifier: Apache-2.0

//go:build linux

package requestpath_test

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/internal/requestpath"
	"github.com/metehq/mete/internal/testseed"
)

const nginxConf = `
worker_processes 1;
pid nginx.pid;
error_log stderr crit;
events { worker_connections 64; }
http {
    access_log off;
    client_body_temp_path b; proxy_temp_path p; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;
    keepalive_requests 1000000;
    server {
        listen %s;
        location / { return 200 other; }
        location = /v1/chat { return 200 chat; }
        location /admin/ { return 200 admin; }
        location /api { return 200 api; }
    }
}`

const startTimeout = time.Minute

// refused is where nginx routes what it answers with status 400.
const refused = "refused"

// TestNGINX compares paths with the routing of nginx: no location is reached past its rule, unless the path is
// disputed. A rule can cover more than its location only for path parameters and backslashes.
func TestNGINX(t *testing.T) {
	rng := rand.New(testseed.PCG(1, 2))
	targets := append([]string{}, nasty...)
	for range 10_000 {
		targets = append(targets, randomTarget(rng))
	}
	routes := route(t, startNGINX(t), targets)
	counts, broader := map[string]int{}, 0
	for i, target := range targets {
		path, disputed := requestpath.Parse(target)
		counts[routes[i]]++
		for name, l := range locations {
			switch takes := l.takes(path); {
			case disputed || routes[i] == refused:
			case routes[i] == name && !takes:
				t.Errorf("nginx brings %q to %s, and rules are asked about %q", target, name, path)
			case routes[i] != name && takes:
				broader++
				if sent, _, _ := strings.Cut(target, "?"); !strings.ContainsAny(sent, `;\`) && !strings.Contains(strings.ToLower(sent), "%3b") && !strings.Contains(strings.ToLower(sent), "%5c") {
					t.Errorf("nginx brings %q to %s, and rules are asked about %q", target, routes[i], path)
				}
			}
		}
	}
	for name := range locations {
		if counts[name] == 0 {
			t.Errorf("no target reached %s", name)
		}
	}
	t.Logf("%d targets: %v; taken for more than they are to nginx: %d", len(targets), counts, broader)
}

// startNGINX starts a server with the locations and returns its address.
func startNGINX(t *testing.T) string {
	t.Helper()
	dir, addr := t.TempDir(), proctest.FreeAddr(t)
	if err := os.WriteFile(filepath.Join(dir, "nginx.conf"), fmt.Appendf(nil, nginxConf, addr), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(proctest.Find(t, "nginx", "nginx"), "-p", dir, "-c", "nginx.conf", "-e", "stderr", "-g", "daemon off;")
	proctest.Start(t, cmd).WaitReady(startTimeout, proctest.TCP(addr))
	return addr
}

// route returns where the server brings each target. They are sent as they are, many
// at once.
func route(t *testing.T, addr string, targets []string) []string {
	t.Helper()
	var routes []string
	for batch := 64; len(routes) < len(targets); {
		rest := targets[len(routes):]
		got := ask(t, addr, rest[:min(batch, len(rest))])
		if routes = append(routes, got...); len(got) == 0 {
			if batch == 1 {
				t.Fatalf("no answer to %q", rest[0])
			}
			batch = 1 // what comes behind a bad one can take its answer along
			continue
		}
		batch = 64
	}
	return routes
}

// ask returns the answers to targets, up to the first one after which the server
// closes the connection.
func ask(t *testing.T, addr string, targets []string) (routes []string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(startTimeout)); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, target := range targets {
		all.WriteString("GET " + target + " HTTP/1.1\r\nHost: a\r\n\r\n")
	}
	if _, err := io.WriteString(conn, all.String()); err != nil {
		return nil
	}
	for in := bufio.NewReader(conn); len(routes) < len(targets); {
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			return routes
		}
		body, err := io.ReadAll(res.Body)
		switch {
		case err != nil:
			return routes
		case res.StatusCode == http.StatusBadRequest:
			return append(routes, refused)
		case res.StatusCode != http.StatusOK:
			t.Fatalf("%q: status %d", targets[len(routes)], res.StatusCode)
		}
		routes = append(routes, string(body))
	}
	return routes
}
