// SPDX-License-Identifier: Apache-2.0

package respapi_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/respapi"
	"github.com/metehq/mete/storetest"
)

const patience = 20 * time.Second

// newLimiter returns a limiter with a policy, or without one if rules is empty.
func newLimiter(t testing.TB, store mete.Store, rules string, config mete.Config) *mete.Limiter {
	t.Helper()
	var m *policy.Matcher
	if rules != "" {
		var err error
		if m, err = policy.Load([]byte(rules), policy.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	lim, err := mete.New(store, m, config)
	if err != nil {
		t.Fatal(err)
	}
	return lim
}

// serve serves lim on loopback until the test ends.
func serve(t testing.TB, lim *mete.Limiter, config respapi.Config) (*respapi.Server, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serveOn(t, l, lim, config), l.Addr().String()
}

func serveOn(t testing.TB, l net.Listener, lim *mete.Limiter, config respapi.Config) *respapi.Server {
	t.Helper()
	s, err := respapi.New(lim, config)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if err := <-done; !errors.Is(err, respapi.ErrServerClosed) {
			t.Errorf("serve: %v, want ErrServerClosed", err)
		}
	})
	return s
}

// A peer is a client that sends and compares bytes.
type peer struct {
	t testing.TB
	net.Conn
	r *bufio.Reader
}

func dial(t testing.TB, addr string) *peer {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return newPeer(t, nc)
}

func newPeer(t testing.TB, nc net.Conn) *peer {
	t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(patience))
	return &peer{t, nc, bufio.NewReader(nc)}
}

func (p *peer) send(text string) {
	p.t.Helper()
	if _, err := io.WriteString(p, text); err != nil {
		p.t.Fatalf("send %.80q: %v", text, err)
	}
}

// do sends one command and returns its reply as text, with commas between the elements of an array.
func (p *peer) do(words ...string) string {
	p.t.Helper()
	p.send(frame(words...))
	return p.read()
}

func (p *peer) want(reply string, words ...string) {
	p.t.Helper()
	if got := p.do(words...); got != reply {
		p.t.Errorf("%q: got %s, want %s", words, got, reply)
	}
}

// read returns the next reply.
func (p *peer) read() string {
	p.t.Helper()
	line, err := p.r.ReadString('\n')
	if err != nil {
		p.t.Fatalf("read: %v after %q", err, line)
	}
	line = strings.TrimSuffix(line, "\r\n")
	n := 0
	if strings.ContainsRune("$*%", rune(line[0])) {
		fmt.Sscan(line[1:], &n)
	}
	switch {
	case line[0] == '$' && n >= 0:
		body := make([]byte, n+2)
		if _, err := io.ReadFull(p.r, body); err != nil {
			p.t.Fatalf("read: %v", err)
		}
		return string(body[:n])
	case line[0] == '%':
		n *= 2
		fallthrough
	case line[0] == '*' && n >= 0:
		var all []string
		for range n {
			all = append(all, p.read())
		}
		return line[:1] + "[" + strings.Join(all, ",") + "]"
	case line[0] == ':':
		return line[1:]
	}
	return line
}

// wantClosed asserts that the server closes the connection after these bytes.
func (p *peer) wantClosed(after string) {
	p.t.Helper()
	rest, err := io.ReadAll(p.r)
	if string(rest) != after || err != nil {
		p.t.Errorf("got %q and error %v, want %q and the end", rest, err, after)
	}
}

// frame returns a command as an array of bulk strings.
func frame(words ...string) string {
	text := fmt.Sprintf("*%d\r\n", len(words))
	for _, word := range words {
		text += fmt.Sprintf("$%d\r\n%s\r\n", len(word), word)
	}
	return text
}

// A clock stands still until it is moved.
type clock struct{ now atomic.Int64 }

func newClock() *clock {
	c := new(clock)
	c.now.Store(1_700_000_000_000_000)
	return c
}

func (c *clock) read() bucket.Instant    { return bucket.Instant(c.now.Load()) }
func (c *clock) advance(d time.Duration) { c.now.Add(d.Microseconds()) }

// start serves a limiter over a model with a clock of its own.
func start(t testing.TB, rules string, config respapi.Config) (*peer, *clock, string) {
	t.Helper()
	clock := newClock()
	_, addr := serve(t, newLimiter(t, storetest.NewModel(clock.read), rules, mete.Config{}), config)
	return dial(t, addr), clock, addr
}
