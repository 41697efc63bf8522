// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/proxy"
)

// answering is an upstream that answers every request with the same bytes.
func answering(t *testing.T, answer string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for from := bufio.NewReader(conn); ; {
					r, err := http.ReadRequest(from)
					if err != nil {
						return
					}
					io.Copy(io.Discard, r.Body)
					io.WriteString(conn, answer)
				}
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

// A server that has nothing but informational answers is one that fails.
func TestHints_Bound(t *testing.T) {
	const hint, last = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	for n, want := range map[int]int{100: 200, 101: 502} {
		conn, from := dial(t, start(t, answering(t, strings.Repeat(hint, n)+last), 1, proxy.Config{}))
		io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		resp, err := http.ReadResponse(from, nil)
		hints := 0
		for ; err == nil && resp.StatusCode == 103; hints++ {
			resp, err = http.ReadResponse(from, nil)
		}
		if err != nil || resp.StatusCode != want || hints != 100 {
			t.Errorf("%d informational answers: got %d of them and then %v (%v), want 100 and %d", n, hints, resp, err, want)
		}
	}
}

// A client of HTTP/1.0 would take an informational answer for the final one.
func TestHints_NotForHTTP10(t *testing.T) {
	conn, from := dial(t, start(t, answering(t, "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), 1, proxy.Config{}))
	io.WriteString(conn, "GET / HTTP/1.0\r\nHost: a\r\n\r\n")
	if resp, err := http.ReadResponse(from, nil); err != nil || resp.StatusCode != 200 {
		t.Errorf("got %v (%v), want 200", resp, err)
	}
}

// Fields for one hop are not in them.
func TestHints_HopByHop(t *testing.T) {
	conn, from := dial(t, start(t, answering(t, "HTTP/1.1 103 Early Hints\r\nConnection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\nUpgrade: h2c\r\nLink: </a>\r\n\r\n"+
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), 1, proxy.Config{}))
	io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if resp, err := http.ReadResponse(from, nil); err != nil || resp.StatusCode != 103 || len(resp.Header) != 1 || resp.Header.Get("Link") != "</a>" {
		t.Errorf("got %v (%v), want a hint with Link alone", resp, err)
	}
}

// A client that takes nothing holds up its own requests, not those that share their
// connection to the upstream.
func TestHints_SlowClientHoldsUpNobody(t *testing.T) {
	up := serveH2C(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/hints" {
			return
		}
		for range 50 {
			w.Header().Set("Link", strings.Repeat("x", 100<<10))
			w.WriteHeader(http.StatusEarlyHints)
		}
	}))
	p := gateTo(t, proxy.Upstream{Servers: []*url.URL{{Scheme: "h2c", Host: up}}}, proxy.Config{ClientTimeout: 5 * time.Second})
	front := httptest.NewServer(p)
	defer front.Close()
	get(t, front.URL) // so that there is a connection to share
	inFlight := func() int64 { return p.Stats()[0].Servers[0].InFlight }
	const tries = 5 // on a slow machine it may be cut off before the others are answered
	for n := 1; ; n++ {
		conn, _ := dial(t, front.URL)
		fmt.Fprintf(conn, "%s", strings.Repeat("GET /hints HTTP/1.1\r\nHost: a\r\n\r\n", 3))
		until(t, "it is in flight", func() bool { return inFlight() == 1 })
		for range 20 {
			if resp, _ := get(t, front.URL); resp.StatusCode != 200 {
				t.Fatalf("another client: got %d", resp.StatusCode)
			}
		}
		if inFlight() == 1 {
			break
		}
		if n == tries {
			t.Fatal("no slow client was in flight until the others were answered: this test shows nothing")
		}
	}
	until(t, "it is cut off", func() bool { return inFlight() == 0 })
}
