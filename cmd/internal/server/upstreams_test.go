// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bufio"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/cmd/internal/server"
	"github.com/metehq/mete/internal/testkit"
)

// named is an upstream that answers with its name, as long as it is well.
func named(t *testing.T, name string) (*httptest.Server, *atomic.Bool) {
	t.Helper()
	well := new(atomic.Bool)
	well.Store(true)
	u := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" && !well.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
		io.WriteString(w, name)
	}))
	t.Cleanup(u.Close)
	return u, well
}

// The files in examples/gateway-in-front work as documented.
func TestGatewayInFront(t *testing.T) {
	t.Parallel()
	c, _, err := config.Load("../../../examples/gateway-in-front/mete.yaml", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	app, appWell := named(t, "app")
	other, otherWell := named(t, "app")
	files, _ := named(t, "files")
	c.Listen, c.AdminListen = "127.0.0.1:0", "127.0.0.1:0"
	c.Upstreams[0].URLs, c.Upstreams[1].URLs = urls(app.URL, other.URL), urls(files.URL)
	c.Upstreams[0].Health.Interval = 10 * time.Millisecond
	s := start(t, c)
	for path, want := range map[string]string{"/": "app", "/uploads/x": "app", "/files/a.txt": "files", "//files": "files", "/filesystem": "app"} {
		if status, body := get(t, s.main+path); status != 200 || body != want {
			t.Errorf("%s: got %d %q, want %q", path, status, body, want)
		}
	}
	r, err := http.NewRequest(http.MethodGet, s.main, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "Files.localhost"
	if resp, err := http.DefaultClient.Do(r); err != nil {
		t.Error(err)
	} else {
		if text, _ := io.ReadAll(resp.Body); string(text) != "files" {
			t.Errorf("files.localhost: got %q", text)
		}
		resp.Body.Close()
	}
	for path, want := range map[string]int{"/": 413, "/uploads/x": 200} {
		resp, err := http.Post(s.main+path, "text/plain", strings.NewReader(strings.Repeat("x", 2<<20)))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("2 MiB to %s: got %d, want %d", path, resp.StatusCode, want)
		}
	}
	appWell.Store(false)
	testkit.Until(t, "one server is down", func() bool { return s.log.Count("failed health checks") == 1 })
	if status, _ := get(t, s.main+"/"); status != 200 {
		t.Errorf("with one server down: got %d", status)
	}
	otherWell.Store(false)
	testkit.Until(t, "both servers are down", func() bool { return s.log.Count("failed health checks") == 2 })
	if status, body := get(t, s.main+"/"); status != 503 || !strings.Contains(body, "No upstream server is available") {
		t.Errorf("with both down: got %d %s", status, body)
	}
	if status, _ := get(t, s.main+"/files"); status != 200 {
		t.Errorf("the other upstream: got %d", status)
	}
}

// Limits shrink while the upstream fails, and no further than to the floor.
func TestAdaptive(t *testing.T) {
	t.Parallel()
	for law, slow := range map[string]bool{"aimd": true, "gradient": false} {
		t.Run(law, func(t *testing.T) {
			var trouble atomic.Bool
			u := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case trouble.Load() && slow:
					answerLate(r, 30*time.Millisecond)
				case trouble.Load():
					w.WriteHeader(http.StatusServiceUnavailable)
				}
			}))
			defer u.Close()
			c := testConfig()
			c.Upstream = mustURL(u.URL)
			c.Policy = filepath.Join(t.TempDir(), "policy.yaml")
			if err := os.WriteFile(c.Policy, []byte(`{"rules": [{"name": "all", "limit_keys": [], "algorithm_config": {"rate": "1/1h", "burst": 100000}}]}`), 0o600); err != nil {
				t.Fatal(err)
			}
			c.Adaptive = config.Adaptive{Law: law, Tolerance: 1.5, Floor: 0.5, Interval: 5 * time.Millisecond}
			if slow {
				c.Adaptive.Target = 20 * time.Millisecond
			}
			s := start(t, c)
			cost := func() int { // of a request, in tokens
				before := remaining(t, s.main)
				return before - remaining(t, s.main)
			}
			if !slow {
				if got := cost(); got != 1 { // a slow machine may be above the target
					t.Errorf("a request costs %d tokens while all is well", got)
				}
			}
			trouble.Store(true)
			testkit.Until(t, "a request costs two tokens: half of the limit is left", func() bool { return cost() == 2 })
			for range 30 {
				if got := cost(); got > 2 {
					t.Errorf("a request costs %d tokens, below the floor", got)
				}
			}
		})
	}
}

// answerLate holds a request up for d, unless its client leaves.
func answerLate(r *http.Request, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	}
}

// remaining is how many tokens are left after a request.
func remaining(t *testing.T, url string) (n int) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if _, err := fmt.Sscan(resp.Header.Get("RateLimit-Remaining"), &n); err != nil {
		t.Fatalf("RateLimit-Remaining %q: %v", resp.Header.Get("RateLimit-Remaining"), err)
	}
	return n
}

// HTTP/2 without TLS needs the setting for it. An upstream's certificate needs its authority in the
// settings.
func TestUpstream_Protocols(t *testing.T) {
	t.Parallel()
	up := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Proto) }))
	up.EnableHTTP2 = true
	up.StartTLS()
	defer up.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: up.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	h2c := new(http.Protocols)
	h2c.SetUnencryptedHTTP2(true)
	client := &http.Client{Transport: &http.Transport{Protocols: h2c}}
	defer client.CloseIdleConnections()
	for _, on := range []bool{true, false} {
		c := testConfig()
		c.H2C = on
		c.Upstreams = []config.Upstream{{Name: "app", URLs: urls(up.URL), CA: ca}}
		s := start(t, c)
		if status, body := get(t, s.main); status != 200 || body != "HTTP/2.0" {
			t.Errorf("by HTTP/1.1: got %d %q, want HTTP/2 behind it", status, body)
		}
		resp, err := client.Get(s.main)
		switch {
		case on && (err != nil || resp.ProtoMajor != 2 || resp.StatusCode != 200):
			t.Errorf("h2c: got %v (%v)", resp, err)
		case !on && err == nil:
			t.Errorf("h2c, which is off: got %v", resp)
		}
		if err == nil {
			resp.Body.Close()
		}
	}
}

func TestUpstream_BadAuthority(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(empty, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, ca := range []string{empty, empty + ".missing"} {
		c := testConfig()
		c.Upstreams = []config.Upstream{{Name: "app", URLs: urls("https://127.0.0.1:1"), CA: ca}}
		s, err := server.New(context.Background(), c, slog.New(slog.DiscardHandler))
		if err == nil {
			s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "upstream app: ca: ") {
			t.Errorf("ca %s: got error %v", ca, err)
		}
	}
}

// The deadline of one response does not apply to the next one on its connection.
func TestGateway_LateAnswerOnAnOldConnection(t *testing.T) {
	t.Parallel()
	u := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/late" {
			answerLate(r, 1500*time.Millisecond)
		}
		io.WriteString(w, "hello")
	}))
	defer u.Close()
	c := testConfig()
	c.Upstream = mustURL(u.URL)
	c.Timeouts.ClientBody = time.Second
	s := start(t, c)
	for _, path := range []string{"/", "/late", "/late"} { // on one connection
		if status, body := get(t, s.main+path); status != 200 || body != "hello" {
			t.Errorf("%s: got %d %q", path, status, body)
		}
	}
}

// The setting underscores_in_headers reaches the gateway, which drops them without it. With
// pass it refuses one that looks like the name that a rule reads.
func TestUnderscoresInHeaders(t *testing.T) {
	t.Parallel()
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, r.Header.Get("X_api_key")+r.Header.Get("X_other"))
	}))
	defer up.Close()
	for _, tt := range []struct{ setting, name, want string }{
		{"", "X_Api_Key", "200 "}, {"pass", "X_Other", "200 k"}, {"pass", "X_Api_Key", "400"}, {"refuse", "X_Other", "400"},
	} {
		setting, want := tt.setting, tt.want
		c := testConfig()
		c.Upstream = mustURL(up.URL)
		if setting != "" {
			c.UnderscoresInHeaders = setting
		}
		r, err := http.NewRequest(http.MethodGet, start(t, c).main, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{tt.name: {"k"}}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if got := fmt.Sprint(resp.StatusCode, " ", string(text)); !strings.HasPrefix(got, want) || want == "200 " && got != want {
			t.Errorf("%q, %s: got %s, want %s", setting, tt.name, got, want)
		}
	}
}

// "OPTIONS *" is a request like others: net/http does not answer it past the bounds.
func TestOptionsAsterisk(t *testing.T) {
	t.Parallel()
	up, _ := named(t, "app")
	inFront := testConfig()
	inFront.Upstream = mustURL(up.URL)
	for name, c := range map[string]config.Config{"gateway": inFront, "API": testConfig()} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(start(t, c).main, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(patience))
		io.WriteString(conn, "OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
		if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || resp.StatusCode < 400 || resp.StatusCode >= 500 {
			t.Errorf("%s: got %v (%v), want a refusal", name, resp, err)
		}
	}
}
