// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/tls"
	"math"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// A boundedListener limits the number of open connections. If the limit is reached, a new connection replaces an
// idle one. If none is idle, it waits in the accept queue of the operating system.
type boundedListener struct {
	net.Listener
	slots  chan struct{} // one per connection, and one while Accept waits
	closed chan struct{}
	once   sync.Once
	full   atomic.Uint64 // how often all slots were in use

	mu    sync.Mutex // guards conns
	conns map[*boundedConn]struct{}
}

func newBoundedListener(l net.Listener, most int) *boundedListener {
	return &boundedListener{Listener: l, slots: make(chan struct{}, most), closed: make(chan struct{}), conns: map[*boundedConn]struct{}{}}
}

func (l *boundedListener) Accept() (net.Conn, error) {
	if !l.acquireSlot() {
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	b := &boundedConn{Conn: c, listener: l}
	l.mu.Lock()
	l.conns[b] = struct{}{}
	l.mu.Unlock()
	return b, nil
}

func (l *boundedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// open returns the number of connections.
func (l *boundedListener) open() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(len(l.conns))
}

type boundedConn struct {
	net.Conn
	once     sync.Once
	listener *boundedListener
	idle     atomic.Int64 // Unix nanoseconds since it is idle, or stateInUse or stateReclaimed
}

func (c *boundedConn) Close() error {
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
func (c *boundedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return net.ErrClosed
}

// reclaimInterval is the polling interval for an idle connection while all slots are in use.
const reclaimInterval = 50 * time.Millisecond

// Values of boundedConn.idle for connections that are not idle.
const (
	stateInUse     = 0
	stateReclaimed = -1 // closed to free its slot
)

// acquireSlot waits for a free slot. If all slots are in use, it closes the connection that has been idle longest:
// its client can reconnect, while a new client has no other way in. It returns false after the listener is closed.
func (l *boundedListener) acquireSlot() bool {
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
func (l *boundedListener) closeIdle() bool {
	l.mu.Lock()
	var oldest *boundedConn
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

// noteIdle records the start of a connection's idle time. It is an [http.Server.ConnState] hook.
func noteIdle(c net.Conn, state http.ConnState) {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	b, ok := c.(*boundedConn)
	if !ok {
		return
	}
	at := int64(stateInUse)
	if state == http.StateIdle {
		at = time.Now().UnixNano()
	}
	if old := b.idle.Load(); old != stateReclaimed {
		b.idle.CompareAndSwap(old, at)
	}
}

// An inFlightLimit bounds the number of concurrent requests.
type inFlightLimit struct {
	most    int64
	exempt  func(*http.Request) bool // requests with a limit of their own; nil for none
	now     atomic.Int64
	refused atomic.Uint64
}

// isStream reports whether r opens an event stream on the admin address. The API limits streams separately.
func isStream(r *http.Request) bool {
	return r.URL.Path == "/v1/traffic/stream" || r.URL.Path == "/v1/watch"
}

// enter rejects requests above the limit with status 503, except health checks.
func (c *inFlightLimit) enter(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.exempt(r) {
			next.ServeHTTP(w, r)
			return
		}
		defer c.now.Add(-1)
		if c.now.Add(1) > c.most && r.URL.Path != "/livez" && r.URL.Path != "/readyz" {
			c.refused.Add(1)
			w.Header()["Retry-After"] = []string{"1"}
			answerProblem(w, r, http.StatusServiceUnavailable, "too many requests in flight; try again soon")
			return
		}
		next.ServeHTTP(w, r)
	})
}
