// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/proxy"
)

// A network is one in memory, for tests in a bubble: time goes on while everybody
// waits, which no true connection lets it.
type network struct {
	t      *testing.T
	mu     sync.Mutex
	up     map[string]*pipes // by host:port
	dialed map[string]int
}

func newNetwork(t *testing.T) *network {
	return &network{t: t, up: map[string]*pipes{}, dialed: map[string]int{}}
}

// dial connects to a server that is up.
func (n *network) dial(ctx context.Context, _, address string) (net.Conn, error) {
	n.mu.Lock()
	n.dialed[address]++
	l := n.up[address]
	n.mu.Unlock()
	if l == nil {
		return nil, &net.OpError{Op: "dial", Err: fmt.Errorf("%s: connection refused", address)}
	}
	near, far := newDuplex()
	select {
	case l.conns <- far:
		return near, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// connect dials a front that this network serves, for requests that are written by hand.
func (n *network) connect(address string) lineConn {
	n.t.Helper()
	conn, err := n.dial(n.t.Context(), "", address)
	if err != nil {
		n.t.Fatal(err)
	}
	return lineConn{conn, bufio.NewReader(conn)}
}

// client returns a client of this network, whose connections end with the bubble.
func (n *network) client() *http.Client {
	transport := &http.Transport{DialContext: n.dial, DisableKeepAlives: true}
	return &http.Client{Transport: transport}
}

// dials is how often somebody has tried to connect to that address.
func (n *network) dials(address string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dialed[address]
}

// serve has h answer at that address until stop is called.
func (n *network) serve(address string, h http.HandlerFunc) (stop func()) {
	return n.serveBy(address, &http.Server{Handler: h})
}

// serveH2C does the same over HTTP/2 without TLS.
func (n *network) serveH2C(address string, h http.HandlerFunc) (stop func()) {
	return n.serveBy(address, &http.Server{Handler: h, Protocols: protocols(true)})
}

func (n *network) serveBy(address string, server *http.Server) (stop func()) {
	l := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	n.mu.Lock()
	n.up[address] = l
	n.mu.Unlock()
	go server.Serve(l)
	return func() {
		n.mu.Lock()
		delete(n.up, address)
		n.mu.Unlock()
		server.Close()
	}
}

// gate is a proxy on this network to servers "a:80", "b:80" ..., with this health.
func (n *network) gate(config proxy.Config, health proxy.Health, servers ...string) *proxy.Proxy {
	n.t.Helper()
	return n.gateBy(middleware(n.t, 1_000_000, httplimit.Config{}), config, health, servers...)
}

// gateBy is gate with the limits of mw.
func (n *network) gateBy(mw *httplimit.Middleware, config proxy.Config, health proxy.Health, servers ...string) *proxy.Proxy {
	n.t.Helper()
	u := proxy.Upstream{Name: "app", Health: health}
	for _, s := range servers {
		u.Servers = append(u.Servers, &url.URL{Scheme: "http", Host: s})
	}
	if config.Dial == nil {
		config.Dial = n.dial
	}
	p, err := proxy.NewRouted([]proxy.Upstream{u}, []proxy.Route{{Upstream: "app"}}, mw, config)
	if err != nil {
		n.t.Fatal(err)
	}
	return p
}

// ask asks a proxy without any network before it.
func ask(p *proxy.Proxy, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w
}

func getRequest() *http.Request { return httptest.NewRequest(http.MethodGet, "/", nil) }

// A duplex is a connection in memory. Each of its directions may end by itself.
type duplex struct {
	net.Conn // written to
	in       net.Conn
}

func newDuplex() (near, far duplex) {
	a, b := net.Pipe()
	c, d := net.Pipe()
	return duplex{a, d}, duplex{c, b}
}

func (c duplex) Read(p []byte) (int, error) { return c.in.Read(p) }
func (c duplex) CloseWrite() error          { return c.Conn.Close() }
func (c duplex) Close() error               { return errors.Join(c.Conn.Close(), c.in.Close()) }

func (c duplex) SetReadDeadline(at time.Time) error { return c.in.SetReadDeadline(at) }
func (c duplex) SetDeadline(at time.Time) error {
	return errors.Join(c.Conn.SetDeadline(at), c.in.SetDeadline(at))
}

// pipes are a listener in memory.
type pipes struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipes) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }
