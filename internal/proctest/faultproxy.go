// SPDX-License-Identifier: Apache-2.0

package proctest

import (
	"net"
	"sync"
	"testing"
	"time"
)

// A Proxy forwards TCP connections to a server, with faults on demand. It is safe for concurrent use. The
// test's cleanup closes it.
type Proxy struct {
	Addr string // host:port of the listener, which never changes

	t      testing.TB
	target string

	mu       sync.Mutex
	listener net.Listener // nil while connections are refused
	links    map[*link]struct{}
	taken    int // number of connections so far
	delay    time.Duration
	black    bool
	cuts     int // number of replies to cut
	closed   bool
	running  sync.WaitGroup // the accept loop and every link
}

// StartProxy starts a proxy for the server at host:port, which may start later.
func StartProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	p := &Proxy{Addr: FreeAddr(t), t: t, target: target, links: make(map[*link]struct{})}
	p.Refuse(false)
	t.Cleanup(func() {
		p.mu.Lock()
		p.closed = true
		p.mu.Unlock()
		p.Refuse(true)
		p.CutNow()
		p.running.Wait()
	})
	return p
}

// Delay adds d to the latency of every reply, without a limit on throughput; 0 ends the delay. Requests are
// not delayed.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// Blackhole drops all requests and replies from now on, but keeps and accepts connections. Blackhole(false)
// closes the connections that lost data, because a network never drops bytes within a connection.
func (p *Proxy) Blackhole(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.black = on
	for l := range p.links {
		if !on && l.lossy {
			l.close()
		}
	}
}

// CutBeforeReply closes the connections of the next n replies instead of forwarding the replies. The server
// has executed the requests, and the clients do not know.
func (p *Proxy) CutBeforeReply(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cuts = n
}

// CutNow closes all current connections. New ones are accepted.
func (p *Proxy) CutNow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.close()
	}
}

// Refuse makes new connections fail as if no process listened. Current connections stay open: see [Proxy.CutNow].
func (p *Proxy) Refuse(on bool) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if on == (p.listener == nil) {
		return
	}
	if on {
		p.listener.Close()
		p.listener = nil
		return
	}
	listener, err := net.Listen("tcp", p.Addr)
	if err != nil {
		p.t.Errorf("listen again: %v", err)
		return
	}
	p.listener = listener
	p.running.Go(func() { p.accept(listener) })
}

func (p *Proxy) accept(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { p.serve(client) })
	}
}

// addLink registers a link. It returns false if the proxy is closed.
func (p *Proxy) addLink(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.links[l] = struct{}{}
	p.taken++
	return true
}

// Connections returns the number of connections so far.
func (p *Proxy) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken
}

func (p *Proxy) removeLink(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}
