// SPDX-License-Identifier: Apache-2.0

package abuse_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/metehq/mete/httpapi"
)

// raw sends these bytes, which may be cut off by the server, and returns the
// status that came back.
func raw(t *testing.T, addr string, parts ...string) int {
	t.Helper()
	conn := dial(t, addr)
	go func() {
		for _, part := range parts {
			if _, err := io.WriteString(conn, part); err != nil {
				return
			}
		}
	}()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Errorf("%.60q: %v, want an answer", parts[0], err)
		return 0
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

func TestAbuse_HugeHeaders(t *testing.T) {
	t.Parallel()
	var reached atomic.Int64
	upstream := serve(t, func(http.ResponseWriter, *http.Request) { reached.Add(1) })
	s := start(t, perAddress("100"), "upstream: "+upstream.URL+"\n")
	huge := strings.Repeat("a", 1<<20)
	many := strings.Repeat("X-A: b\r\n", 1<<15)
	for _, addr := range []string{s.Addr, s.AdminAddr} {
		for _, tt := range []struct {
			what  string
			parts []string
			want  int
		}{
			{"a value of 1 MiB", []string{"GET / HTTP/1.1\r\nHost: x\r\nX: ", huge, "\r\n\r\n"}, 431},
			{"a name of 1 MiB", []string{"GET / HTTP/1.1\r\nHost: x\r\n", huge, ": y\r\n\r\n"}, 431},
			{"32768 fields", []string{"GET / HTTP/1.1\r\nHost: x\r\n", many, "\r\n"}, 431},
			{"a target of 1 MiB", []string{"GET /", huge, " HTTP/1.1\r\nHost: x\r\n\r\n"}, 431},
			{"a method of 1 MiB", []string{huge, " / HTTP/1.1\r\nHost: x\r\n\r\n"}, 431},
			{"a token of 1 MiB", []string{"GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ", huge, "\r\n\r\n"}, 431},
			{"two lengths", []string{"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"}, 400},
			{"a length and chunks, other case", []string{"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked, gzip\r\n\r\n"}, 501},
			{"a bare line feed in a value", []string{"GET / HTTP/1.1\r\nHost: x\r\nX: a\rb\r\n\r\n"}, 400},
			{"a space before the colon", []string{"GET / HTTP/1.1\r\nHost: x\r\nX-A : b\r\n\r\n"}, 400},
			{"two hosts", []string{"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n"}, 400},
			{"no host", []string{"GET / HTTP/1.1\r\n\r\n"}, 400},
		} {
			if got := raw(t, addr, tt.parts...); got != tt.want {
				t.Errorf("%s: %s: status %d, want %d", addr, tt.what, got, tt.want)
			}
		}
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("%d of them reached the upstream", n)
	}
	mustLive(t, s, "huge headers")
}

// An endless body counts the bytes read from it.
type endless struct{ read atomic.Int64 }

func (e *endless) Read(p []byte) (int, error) {
	e.read.Add(int64(len(p)))
	clear(p)
	return len(p), nil
}

// socketBuffers exceeds the unread bytes that the buffers between two local programs can hold.
const socketBuffers = 16 << 20

func TestAbuse_HugeBodies(t *testing.T) {
	t.Parallel()
	const size = 200 << 20
	s := start(t, perAddress("100"), "")
	upstream := serve(t, func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })
	bounded := start(t, perAddress("100"), "upstream: "+upstream.URL+"\nmax_body_bytes: 100000\n")
	for _, url := range []string{s.URL + "/v1/take", s.URL + "/v1/peek", bounded.URL + "/upload"} {
		for _, length := range []int64{size, -1} { // announced, and chunked
			body := new(endless)
			req, err := http.NewRequest(http.MethodPost, url, io.LimitReader(body, size))
			if err != nil {
				t.Fatal(err)
			}
			req.ContentLength = length
			req.Header.Set("Content-Type", "application/json")
			resp, err := client.Do(req)
			if err != nil {
				t.Errorf("%s, length %d: %v, want status 413", url, length, err)
				continue
			}
			if got := readAnswer(t, resp); got.status != http.StatusRequestEntityTooLarge {
				t.Errorf("%s, length %d: %d %s, want 413", url, length, got.status, got.body)
			}
			if got := body.read.Load(); got > socketBuffers {
				t.Errorf("%s, length %d: %d bytes were taken, want at most %d", url, length, got, socketBuffers)
			}
		}
	}
	mustLive(t, s, "huge bodies")
	mustLive(t, bounded, "huge bodies")
}

// The work per request is bounded. A request that exceeds the bound is rejected as a whole.
func TestAbuse_Amplification(t *testing.T) {
	t.Parallel()
	s := start(t, perAddress("1000"), "")
	one := takeBody("ip:address", "192.0.2.1")
	batch := func(n int) string { return `{"requests":[` + strings.Repeat(one+",", n-1) + one + `]}` }
	many := map[string]string{}
	for i := range 2000 {
		many[fmt.Sprintf("header:x-%d", i)] = "v"
	}
	var attributes []string
	for name, value := range many {
		attributes = append(attributes, name, value)
	}
	long := strings.Repeat("i", 129)
	for _, tt := range []struct {
		what, body string
		want       int
	}{
		{"a batch at the bound", batch(httpapi.MaxBatch), 200},
		{"a batch beyond it", batch(httpapi.MaxBatch + 1), 400},
		{"a batch of batches", `{"requests":[{"requests":[` + one + `]}]}`, 400},
		{"an empty batch", `{"requests":[]}`, 400},
		{"a body beyond 64 KiB", takeBody("header:x", strings.Repeat("x", httpapi.MaxBodyBytes)), 413},
		{"2000 attributes that no rule reads", takeBody(attributes...), 200},
		{"an id beyond 128 bytes", `{"attributes":{"ip:address":"192.0.2.9"},"id":"` + long + `"}`, 400},
		{"a deep body", `{"attributes":` + strings.Repeat(`{"a":`, 10_000) + `1` + strings.Repeat("}", 10_001), 400},
		{"an attribute twice", `{"attributes":{"ip:address":"192.0.2.1","ip:address":"192.0.2.2"}}`, 400},
		{"a cost of 400 digits", `{"attributes":{"ip:address":"192.0.2.9"},"cost":` + strings.Repeat("9", 400) + `}`, 400},
		{"a cost of 1e999", `{"attributes":{"ip:address":"192.0.2.9"},"cost":1e999}`, 400},
		{"a cost below 0", `{"attributes":{"ip:address":"192.0.2.9"},"cost":-1}`, 400},
		{"a cost that is no number", `{"attributes":{"ip:address":"192.0.2.9"},"cost":NaN}`, 400},
	} {
		if got := ask(t, http.MethodPost, s.URL+"/v1/take", tt.body); got.status != tt.want {
			t.Errorf("%s: %d %.200s, want %d", tt.what, got.status, got.body, tt.want)
		}
	}
	left := ask(t, http.MethodPost, s.URL+"/v1/peek", one).body
	if !strings.Contains(left, fmt.Sprintf(`"remaining":%d`, 1000-httpapi.MaxBatch)) {
		t.Errorf("after one good batch of %d from 1000: %s", httpapi.MaxBatch, left)
	}
	spared := ask(t, http.MethodPost, s.URL+"/v1/peek", takeBody("ip:address", "192.0.2.9")).body
	if !strings.Contains(spared, `"remaining":1000`) {
		t.Errorf("after bad questions alone: %s, want all 1000 left", spared)
	}
}
