// SPDX-License-Identifier: Apache-2.0

package proctest

import (
	"net"
	"slices"
	"sync"
	"time"
)

const (
	chunkSize = 32 << 10

	// chunksDelayed is the maximum number of delayed chunks per connection; the network buffers the rest.
	chunksDelayed = 1024
)

type link struct {
	client, server net.Conn
	closed         chan struct{}
	closing        sync.Once
	lossy          bool // whether data was dropped; guarded by Proxy.mu
}

// close closes both sides. It is idempotent.
func (l *link) close() {
	l.closing.Do(func() {
		l.client.Close()
		l.server.Close()
		close(l.closed)
	})
}

type chunk struct {
	data []byte
	due  time.Time
}

func (p *Proxy) serve(client net.Conn) {
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		client.Close()
		return
	}
	l := &link{client: client, server: server, closed: make(chan struct{})}
	defer l.close()
	if !p.addLink(l) {
		return
	}
	defer p.removeLink(l)
	replies := make(chan chunk, chunksDelayed)
	p.running.Go(func() { p.forwardRequests(l) })
	p.running.Go(func() { p.receiveReplies(l, replies) })
	p.deliverReplies(l, replies)
}

func (p *Proxy) forwardRequests(l *link) {
	defer l.close()
	buffer := make([]byte, chunkSize)
	for {
		n, err := l.client.Read(buffer)
		if n > 0 && !p.drops(l) {
			if _, err := l.server.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// receiveReplies reads the data of the server and sets the due time of each chunk.
func (p *Proxy) receiveReplies(l *link, replies chan<- chunk) {
	defer close(replies)
	buffer := make([]byte, chunkSize)
	for {
		n, err := l.server.Read(buffer)
		if n > 0 {
			if p.cutReply(l) {
				return
			}
			p.mu.Lock()
			due := time.Now().Add(p.delay)
			p.mu.Unlock()
			select {
			case replies <- chunk{slices.Clone(buffer[:n]), due}:
			case <-l.closed:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *Proxy) deliverReplies(l *link, replies <-chan chunk) {
	for c := range replies {
		if wait := time.Until(c.due); wait > 0 {
			select {
			case <-time.After(wait):
			case <-l.closed:
				return
			}
		}
		if p.drops(l) {
			continue
		}
		if _, err := l.client.Write(c.data); err != nil {
			return
		}
	}
}

func (p *Proxy) drops(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.lossy = l.lossy || p.black
	return l.lossy
}

// cutReply closes l if the reply that just arrived must be cut.
func (p *Proxy) cutReply(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cuts == 0 {
		return false
	}
	p.cuts--
	l.close()
	return true
}
