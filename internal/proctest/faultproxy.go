// SPDX-License-Identifier: Apache-2.0

package proctest

import (
	"net"
	"sync"
	"testing"
	"time"
)

// A Proxy passes TCP connections on to a server, and breaks them as it is told.
// It is safe for concurrent use. The test's cleanup closes it.
type Proxy struct {
	Addr string // host:port it listens on, the same for its whole life

	t      testing.TB
	target string

	mu       sync.Mutex
	listener net.Listener // nil while it refuses
	links    map[*link]struct{}
	taken    int // connections so far
	delay    time.Duration
	black    bool
	cuts     int // replies that are still to be cut off
	closed   bool
	running  sync.WaitGroup // accepting, and every link
}

// StartProxy starts a proxy in front of the server at host:port, which needs not
// be there yet.
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

// Delay makes every reply arrive by d later than it would, however many are
// under way; 0 ends that. Requests are not delayed.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// Blackhole makes everything sent from now on vanish, requests as well as
// replies, while connections are taken and kept. At its end those that have
// lost something are closed: bytes amiss within a connection are nothing that a
// network does.
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

// CutBeforeReply closes the connections of the next n replies in place of
// passing them on: the server has done what it was asked, and the client does
// not learn of it.
func (p *Proxy) CutBeforeReply(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cuts = n
}

// CutNow closes all connections there are. New ones are welcome.
func (p *Proxy) CutNow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.close()
	}
}

// Refuse makes new connections fail as if no process listened. Those there are
// stay; see [Proxy.CutNow].
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

// add takes a link in, unless the proxy has closed.
func (p *Proxy) add(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.links[l] = struct{}{}
	p.taken++
	return true
}

// Connections is how many the proxy has passed on so far.
func (p *Proxy) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken
}

func (p *Proxy) remove(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}
