// SPDX-License-Identifier: Apache-2.0

package exactness

import (
	"bytes"
	"context"
	_ "embed" // nginx.conf
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/bench/exactness/clock"
	"github.com/metehq/mete/bench/exactness/wire"
	"github.com/metehq/mete/internal/proctest"
)

// A gateway is a server that limits HTTP requests by the header X-Key-N of limit N.
type gateway struct {
	addr    string
	version string
	client  *http.Client
	change  func([]wire.Limit) error
	process *proctest.Process
}

func newGateway(addr string) *gateway {
	return &gateway{addr: addr, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: 20 * time.Second}}
}

func (g *gateway) Take(ctx context.Context, keys []string) (bool, time.Duration, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+g.addr+"/", nil)
	if err != nil {
		return false, wire.NoRetry, err
	}
	for i, key := range keys {
		if key != "" {
			r.Header.Set(fmt.Sprint("X-Key-", i), key)
		}
	}
	response, err := g.client.Do(r)
	if err != nil {
		return false, wire.NoRetry, err
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	switch response.StatusCode {
	case http.StatusOK:
		return true, wire.NoRetry, nil
	case http.StatusTooManyRequests:
		if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil {
			return false, time.Duration(seconds) * time.Second, nil
		}
		return false, wire.NoRetry, nil
	default:
		return false, wire.NoRetry, fmt.Errorf("status %s", response.Status)
	}
}

func (g *gateway) Change(limits []wire.Limit) error { return g.change(limits) }

func (g *gateway) ContenderVersion() string { return g.version }

func (g *gateway) Close() { g.client.CloseIdleConnections(); g.process.Kill() }

var versionNumber = regexp.MustCompile(`[0-9]+\.[0-9]+\.[0-9]+`)

// run starts a gateway's program and waits until it listens.
func (g *gateway) run(t testing.TB, c *clock.Clock, dir string, versionArg string, program string, args ...string) {
	if out, err := exec.Command(program, versionArg).CombinedOutput(); err == nil {
		g.version = versionNumber.FindString(string(out))
	}
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), c.Environ()...)
	cmd.Env = append(cmd.Env, "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	g.process = proctest.Start(t, cmd)
	g.process.WaitReady(time.Minute, proctest.TCP(g.addr))
}

func startNginx(t testing.TB, c *clock.Clock, s wire.Setup) (Node, error) {
	dir, g := t.TempDir(), newGateway(proctest.FreeAddr(t))
	size := "1m"
	if s.MaxKeys > 0 {
		size = "32k" // the smallest
	}
	path, generation := filepath.Join(dir, "nginx.conf"), 0
	configure := func(limits []wire.Limit) error {
		generation++
		return os.WriteFile(path, []byte(nginxConf(g.addr, size, limits, generation)), 0o644)
	}
	if err := configure(s.Limits); err != nil {
		return nil, err
	}
	program := proctest.Find(t, "nginx", "nginx")
	g.run(t, c, dir, "-v", program, "-p", dir, "-c", path)
	g.change = func(limits []wire.Limit) error {
		if err := configure(limits); err != nil {
			return err
		}
		if out, err := exec.Command(program, "-p", dir, "-c", path, "-s", "reload").CombinedOutput(); err != nil {
			return fmt.Errorf("nginx -s reload: %w\n%s", err, out)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		return proctest.Poll(ctx, func(context.Context) error {
			g.client.CloseIdleConnections()
			response, err := g.client.Get("http://" + g.addr + "/generation")
			if err != nil {
				return err
			}
			defer response.Body.Close()
			text, err := io.ReadAll(response.Body)
			if err == nil && string(text) != strconv.Itoa(generation) {
				err = fmt.Errorf("nginx has configuration %s, want %d", text, generation)
			}
			return err
		})
	}
	return g, nil
}

//go:embed nginx.conf
var nginxText string

// nginxConf has a zone per limit. The burst is one less than the limit: the first request needs none.
func nginxConf(addr, size string, limits []wire.Limit, generation int) string {
	var zones, uses strings.Builder
	for i, l := range limits {
		rate := fmt.Sprintf("%.0fr/s", float64(l.Capacity)/l.Period.Seconds())
		if l.Period == time.Minute {
			rate = fmt.Sprintf("%dr/m", l.Capacity)
		}
		fmt.Fprintf(&zones, "limit_req_zone $http_x_key_%d zone=l%d:%s rate=%s;\n", i, i, size, rate)
		fmt.Fprintf(&uses, "limit_req zone=l%d burst=%d nodelay;\n", i, l.Capacity-1)
	}
	return strings.NewReplacer("ZONES", zones.String(), "LISTEN", addr, "GENERATION", strconv.Itoa(generation), "USES", uses.String()).Replace(nginxText)
}

func startHAProxy(t testing.TB, c *clock.Clock, s wire.Setup) (Node, error) {
	dir, g := t.TempDir(), newGateway(proctest.FreeAddr(t))
	size := 100_000
	if s.MaxKeys > 0 {
		size = s.MaxKeys
	}
	var rules, tables strings.Builder
	for i, l := range s.Limits {
		fmt.Fprintf(&rules, "\thttp-request track-sc%d req.hdr(X-Key-%d) table l%d if { req.hdr(X-Key-%d) -m found }\n", i, i, i, i)
		fmt.Fprintf(&rules, "\thttp-request deny deny_status 429 if { sc_http_req_rate(%d,l%d) gt %d }\n", i, i, l.Capacity)
		fmt.Fprintf(&tables, "backend l%d\n\tstick-table type string len 64 size %d expire %ds store http_req_rate(%ds)\n",
			i, size, int(l.Period.Seconds()), int(l.Period.Seconds()))
	}
	text := fmt.Sprintf("defaults\n\tmode http\n\ttimeout connect 5s\n\ttimeout client 1m\n\ttimeout server 1m\n\nfrontend web\n\tbind %s\n%s\thttp-request return status 200\n\n%s",
		g.addr, rules.String(), tables.String())
	path := filepath.Join(dir, "haproxy.cfg")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return nil, err
	}
	g.run(t, c, dir, "-v", proctest.Find(t, "haproxy", "haproxy"), "-db", "-f", path)
	return g, nil
}

func startCaddy(t testing.TB, c *clock.Clock, s wire.Setup) (Node, error) {
	program, err := buildCaddy()
	if err != nil {
		return nil, err
	}
	dir, g, admin := t.TempDir(), newGateway(proctest.FreeAddr(t)), proctest.FreeAddr(t)
	path := filepath.Join(dir, "Caddyfile")
	if err := os.WriteFile(path, []byte(caddyfile(g.addr, admin, s.Limits)), 0o644); err != nil {
		return nil, err
	}
	g.run(t, c, dir, "version", program, "run", "--adapter", "caddyfile", "--config", path)
	g.version = "v0.1.0 in Caddy v2.10.2" // those of its module file
	g.change = func(limits []wire.Limit) error {
		response, err := http.Post("http://"+admin+"/load", "text/caddyfile", bytes.NewBufferString(caddyfile(g.addr, admin, limits)))
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			text, _ := io.ReadAll(response.Body)
			return fmt.Errorf("POST /load: %s\n%s", response.Status, text)
		}
		return nil
	}
	return g, nil
}

func caddyfile(addr, admin string, limits []wire.Limit) string {
	var zones strings.Builder
	for i, l := range limits {
		fmt.Fprintf(&zones, "zone l%d {\nmatch {\nheader X-Key-%d *\n}\nkey {header.X-Key-%d}\nevents %d\nwindow %s\n}\n", i, i, i, l.Capacity, l.Period)
	}
	return fmt.Sprintf("{\nadmin %s\nauto_https off\nlog {\nlevel ERROR\n}\n}\nhttp://%s {\nrate_limit {\n%s}\nrespond 200\n}\n", admin, addr, zones.String())
}
