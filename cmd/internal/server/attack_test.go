// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete/cmd/internal/storeurl"
)

// dial opens a connection on which nothing may last longer than patience.
func dial(t *testing.T, url string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(patience))
	return conn
}

// impatience is the server's timeout for stalled clients. Normal clients are much faster, also on a busy
// machine.
const impatience = 3 * time.Second

// bothURLs are the addresses of a server without and one with an upstream: all
// of them are attacked.
func bothURLs(t *testing.T) map[string]*running {
	c := testConfig()
	c.Timeouts.ReadHeader, c.Timeouts.APIRequest, c.Timeouts.Idle = impatience, impatience, impatience
	api := start(t, c)
	upstream := newHeldUpstream(t)
	close(upstream.release)
	c.Upstream = mustURL(upstream.URL)
	gateway := start(t, c)
	return map[string]*running{api.main: api, api.admin: api, gateway.main: gateway, gateway.admin: gateway}
}

func TestAttack_DribbledHeaders(t *testing.T) {
	t.Parallel()
	var closing sync.WaitGroup
	defer closing.Wait()
	for url, s := range bothURLs(t) {
		const dribbling = 50
		for i := range dribbling {
			conn := dial(t, url)
			if _, err := fmt.Fprintf(conn, "GET /livez HTTP/1.1\r\nHost: x\r\nX-%d: ", i); err != nil {
				t.Fatal(err)
			}
			closing.Go(func() {
				if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("%s: a connection whose headers never end was kept open", url)
				}
			})
		}
		if status, _ := get(t, s.admin+"/readyz"); status != 200 {
			t.Errorf("%s: /readyz among dribbling connections: status %d, want 200", url, status)
		}
	}
}

func TestAttack_DribbledBody(t *testing.T) {
	t.Parallel()
	var closing sync.WaitGroup
	defer closing.Wait()
	for url, s := range bothURLs(t) {
		if url == s.main && s.api(t) == "" {
			continue // bodies through the gateway are streams: the upstream's to bound
		}
		conn := dial(t, url)
		fmt.Fprint(conn, "POST /v1/take HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{")
		closing.Go(func() {
			if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s: a connection whose body never ends was kept open", url)
			}
		})
	}
}

// Through the gateway bodies are streams; but what the gateway answers itself, it does
// not wait for.
func TestAttack_UnwantedBody(t *testing.T) {
	t.Parallel()
	upstream := newHeldUpstream(t)
	close(upstream.release)
	c := testConfig()
	c.Timeouts.ReadHeader, c.Upstream, c.Policy = impatience, mustURL(upstream.URL), policyFile(t, burst("1"))
	s := start(t, c)
	if status, _ := get(t, s.main+"/"); status != http.StatusOK {
		t.Fatalf("the first request: status %d, want 200", status)
	}
	var closing sync.WaitGroup
	defer closing.Wait()
	for path, want := range map[string]int{"/": http.StatusTooManyRequests, "/livez": http.StatusOK} {
		conn := dial(t, s.main)
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{", path)
		closing.Go(func() {
			answer, err := io.ReadAll(conn)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s: a connection whose body never ends was kept open", path)
			}
			if status := fmt.Sprintf("HTTP/1.1 %d ", want); !strings.HasPrefix(string(answer), status) {
				t.Errorf("%s: %.60q, want %q", path, answer, status)
			}
		})
	}
}

// api returns the main address if it serves the API.
func (r *running) api(t *testing.T) string {
	if status, _ := post(t, r.main+"/v1/peek", strings.NewReader(`{"attributes":{}}`)); status == 200 {
		if _, body := get(t, r.main+"/v1/take"); strings.Contains(body, "takes POST") {
			return r.main
		}
	}
	return ""
}

func TestAttack_HugeHeader(t *testing.T) {
	t.Parallel()
	header := bytes.Repeat([]byte("a"), 1<<20)
	for url, s := range bothURLs(t) {
		conn := dial(t, url)
		go func() { // the server may close before it has read it all
			fmt.Fprint(conn, "GET /livez HTTP/1.1\r\nHost: x\r\nX-Huge: ")
			conn.Write(header)
			fmt.Fprint(conn, "\r\n\r\n")
		}()
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Errorf("%s: a header of 1 MiB: %v, want status 431", url, err)
			continue
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("%s: a header of 1 MiB: status %d, want 431", url, resp.StatusCode)
		}
		if status, _ := get(t, s.main+"/livez"); status != 200 {
			t.Errorf("%s: /livez afterwards: status %d, want 200", url, status)
		}
	}
}

// A flood is an endless body that counts the bytes read from it.
type flood struct{ read atomic.Int64 }

func (f *flood) Read(p []byte) (int, error) {
	f.read.Add(int64(len(p)))
	clear(p)
	return len(p), nil
}

func TestAttack_HugeBody(t *testing.T) {
	t.Parallel()
	const size, most = 100 << 20, 8 << 20 // what socket buffers hold was sent but not read
	s := start(t, testConfig())
	for _, length := range []int64{size, -1} { // announced, and chunked
		for _, url := range []string{s.main + "/v1/take", s.main + "/v1/peek", s.admin + "/v1/reset"} {
			body := new(flood)
			req, err := http.NewRequest(http.MethodPost, url, io.LimitReader(body, size))
			if err != nil {
				t.Fatal(err)
			}
			req.ContentLength = length
			req.Header.Set("Content-Type", "application/json")
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Errorf("%s, content length %d: %v, want status 413", url, length, err)
				continue
			}
			status, text := read(t, resp)
			if status != http.StatusRequestEntityTooLarge || !strings.Contains(text, "64 KiB") {
				t.Errorf("%s, content length %d: %d %s, want 413 and the bound", url, length, status, text)
			}
			if got := body.read.Load(); got > most {
				t.Errorf("%s, content length %d: %d bytes were sent, want at most %d", url, length, got, most)
			}
		}
	}
}

func TestAttack_UpstreamDown(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	down := l.Addr().String()
	l.Close()
	c := testConfig()
	c.Upstream = mustURL("http://" + down)
	s := start(t, c)
	for range 15 {
		get(t, s.main+"/")
	}
	if n := s.log.Count("upstream failed"); n != 1 {
		t.Errorf("%d records of 15 failures within seconds, want 1", n)
	}
	status, body := get(t, s.main+"/")
	if status != http.StatusBadGateway {
		t.Errorf("upstream down: status %d, want 502", status)
	}
	if strings.Contains(body, down) {
		t.Errorf("upstream down: the answer names the upstream: %s", body)
	}
	if status, _ := get(t, s.main+"/readyz"); status != http.StatusOK {
		t.Errorf("/readyz with the upstream down: status %d, want 200", status)
	}
}

func TestAttack_AdminVerbsAreNotPublic(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.Policy = policyFile(t, burst("1"))
	s := start(t, c)
	if got := s.take("192.0.2.1"); got != 200 {
		t.Fatalf("first take: status %d, want 200", got)
	}
	body := `{"attributes":{"ip:address":"192.0.2.1"}}`
	for _, path := range []string{"/v1/reset", "/v1/refund", "/v1//reset", "//v1/reset", "/v1/./reset", "/v1/%72eset", "/v1/reset/", "/V1/RESET", "/x/../v1/reset"} {
		if status, _ := post(t, s.main+path, strings.NewReader(body)); status/100 == 2 {
			t.Errorf("POST %s on the main address: status %d, want a refusal", path, status)
		}
	}
	if got := s.take("192.0.2.1"); got != 429 {
		t.Errorf("take after the attempts: status %d, want 429", got)
	}
	if status, body := post(t, s.admin+"/v1/reset", strings.NewReader(body)); status != 200 {
		t.Errorf("reset on the admin address: %d %s, want 200", status, body)
	}
	if got := s.take("192.0.2.1"); got != 200 {
		t.Errorf("take after the reset: status %d, want 200", got)
	}
}

// A flood of keys at the store's bound is told to the log, once.
func TestAttack_FloodOfKeysIsTold(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.Store = storeurl.MustParse("memory:?max_keys=10")
	c.Policy = policyFile(t, burst("1"))
	s := start(t, c)
	for i := range 30 {
		s.take(fmt.Sprintf("192.0.2.%d", i))
	}
	if n := s.log.Count("store full"); n != 1 {
		t.Errorf("%d records of a full store, want 1", n)
	}
}

// On both addresses, no request can reserve tokens so far ahead that it blocks a key for years.
func TestAttack_WaitOfYears(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.MaxWait = 30 * time.Second
	s := start(t, c)
	for _, address := range []string{s.main, s.admin} {
		for wait, want := range map[string]int{"87600h": 400, "31s": 400, "30s": 429} { // denied: so much does not refill in 30 s
			body := `{"attributes":{"header:x-api-key":"victim"},"cost":100000000,"max_wait":"` + wait + `"}`
			resp, err := http.Post(address+"/v1/take?status=429", "application/json", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != want {
				t.Errorf("max_wait of %s: got %d, want %d", wait, resp.StatusCode, want)
			}
		}
	}
	resp, err := http.Post(s.main+"/v1/take", "application/json", strings.NewReader(`{"attributes":{"header:x-api-key":"victim"}}`))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Errorf("the victim's own take: got %d, want 200", resp.StatusCode)
	}
}
