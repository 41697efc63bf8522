// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
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

// A client that does not read delays only its own requests, and is then disconnected. Time in the bubble stands
// still while the other requests finish.
func TestHints_SlowClientDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		defer n.serveH2C("up:80", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/hints" {
				return
			}
			for range 50 {
				w.Header().Set("Link", strings.Repeat("x", 100<<10))
				w.WriteHeader(http.StatusEarlyHints)
			}
		})()
		p := gateTo(t, proxy.Upstream{Servers: []*url.URL{{Scheme: "h2c", Host: "up:80"}}}, proxy.Config{ClientTimeout: soon, Dial: n.dial})
		defer p.Close()
		defer n.serve("front:80", p.ServeHTTP)()
		others := n.client()
		inFlight := func() int64 { return p.Stats()[0].Servers[0].InFlight }
		askAnother := func() {
			t.Helper()
			resp, err := others.Get("http://front:80")
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != 200 {
				t.Fatalf("another client: got %d", resp.StatusCode)
			}
		}
		askAnother() // so that there is a connection to share
		slow := n.connect("front:80")
		defer slow.Close()
		began := time.Now()
		io.WriteString(slow, "GET /hints HTTP/1.1\r\nHost: a\r\n\r\n")
		synctest.Wait()
		for range 20 {
			askAnother()
		}
		if got, waited := inFlight(), time.Since(began); got != 1 || waited >= soon || n.dials("up:80") != 1 {
			t.Errorf("after %v, %d requests are in flight on %d connections, want the slow client's on one that all share", waited, got, n.dials("up:80"))
		}
		time.Sleep(soon - time.Since(began) - time.Nanosecond)
		synctest.Wait()
		if got := inFlight(); got != 1 {
			t.Errorf("just before the timeout, %d requests are in flight, want 1", got)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if got := inFlight(); got != 0 {
			t.Errorf("at the timeout, %d requests are in flight, want none: the client is cut off", got)
		}
	})
}
