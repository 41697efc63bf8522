// SPDX-License-Identifier: Apache-2.0

// Package connections bounds the number of open connections of a listener.
package connections

import (
	"crypto/tls"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A Listener limits the number of open connections. If the limit is reached, a new connection replaces an
// idle one. If none is idle, it waits in the accept queue of the operating system.
type Listener struct {
	net.Listener
	slots  chan struct{} // one per connection, and one while Accept waits
	closed chan struct{}
	once   sync.Once
	full   atomic.Uint64 // how often all slots were in use

	mu    sync.Mutex // guards conns
	conns map[*Conn]struct{}
}

// New returns a listener that has at most so many open connections.
func New(l net.Listener, most int) *Listener {
	return &Listener{Listener: l, slots: make(chan struct{}, most), closed: make(chan struct{}), conns: map[*Conn]struct{}{}}
}

func (l *Listener) Accept() (net.Conn, error) {
	if !l.acquireSlot() {
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	b := &Conn{Conn: c, listener: l}
	l.mu.Lock()
	l.conns[b] = struct{}{}
	l.mu.Unlock()
	return b, nil
}

func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// CountFull returns how often a new connection found all slots in use.
func (l *Listener) CountFull() uint64 { return l.full.Load() }

// CountOpen returns the number of connections.
func (l *Listener) CountOpen() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(len(l.conns))
}

// A Conn is a connection of a [Listener].
type Conn struct {
	net.Conn
	once     sync.Once
	listener *Listener
	idle     atomic.Int64 // Unix nanoseconds since it is idle, or stateInUse or stateReclaimed
}

// Close closes the connection and frees its slot.
func (c *Conn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		c.listener.mu.Lock()
		delete(c.listener.conns, c)
		c.listener.mu.Unlock()
		<-c.listener.slots
	})
	return err
}

// CloseWrite closes the sending direction. The HTTP server calls it before Close, so that the client receives the
// last response.
func (c *Conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return net.ErrClosed
}

// SyscallConn returns the raw connection, for servers that wait for bytes themselves.
func (c *Conn) SyscallConn() (syscall.RawConn, error) {
	if socket, ok := c.Conn.(syscall.Conn); ok {
		return socket.SyscallConn()
	}
	return nil, net.ErrClosed
}

// reclaimInterval is the polling interval for an idle connection while all slots are in use.
const reclaimInterval = 50 * time.Millisecond

// Values of Conn.idle for connections that are not idle.
const (
	stateInUse     = 0
	stateReclaimed = -1 // closed to free its slot
)

// acquireSlot waits for a free slot. If all slots are in use, it closes the connection that has been idle longest.
// The client of that connection can reconnect, while a new client has no other way in. It returns false after the listener is closed.
func (l *Listener) acquireSlot() bool {
	for first := true; ; first = false {
		select {
		case l.slots <- struct{}{}:
			return true
		default:
		}
		if first {
			l.full.Add(1)
		}
		if l.closeIdle() {
			continue
		}
		select {
		case l.slots <- struct{}{}:
			return true
		case <-l.closed:
			return false
		case <-time.After(reclaimInterval):
		}
	}
}

// closeIdle closes the connection that has been idle longest, if any.
func (l *Listener) closeIdle() bool {
	l.mu.Lock()
	var oldest *Conn
	since := int64(math.MaxInt64)
	for c := range l.conns {
		if at := c.idle.Load(); at > 0 && at < since {
			oldest, since = c, at
		}
	}
	l.mu.Unlock()
	if since == math.MaxInt64 {
		return false
	}
	if oldest.idle.CompareAndSwap(since, stateReclaimed) { // otherwise it just became active
		oldest.Close()
	}
	return true
}

// Of returns the connection of a listener that c is, or that c encrypts.
func Of(c net.Conn) (*Conn, bool) {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	b, ok := c.(*Conn)
	return b, ok
}

// SetIdle records the start of the connection's idle time, or its end. An idle connection may be closed at any time.
func (c *Conn) SetIdle(idle bool) {
	at := int64(stateInUse)
	if idle {
		at = time.Now().UnixNano()
	}
	if old := c.idle.Load(); old != stateReclaimed {
		c.idle.CompareAndSwap(old, at)
	}
}
