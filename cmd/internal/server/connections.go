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

// A boundedListener has at most so many connections open at once. A new connection replaces
// an idle one. If all are in use, it waits in the queue of the system, which refuses more
// when it is full.
type boundedListener struct {
	net.Listener
	slots  chan struct{} // one for each connection, and one for Accept while it waits
	closed chan struct{}
	once   sync.Once
	full   atomic.Uint64 // times that there was no slot

	mu    sync.Mutex // guards conns
	conns map[*boundedConn]struct{}
}

func bounded(l net.Listener, most int) *boundedListener {
	return &boundedListener{Listener: l, slots: make(chan struct{}, most), closed: make(chan struct{}), conns: map[*boundedConn]struct{}{}}
}

// Accept implements [net.Listener].
func (l *boundedListener) Accept() (net.Conn, error) {
	if !l.room() {
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

// Close implements [net.Listener].
func (l *boundedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// open is the number of connections.
func (l *boundedListener) open() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(len(l.conns))
}

type boundedConn struct {
	net.Conn
	once     sync.Once
	listener *boundedListener
	idle     atomic.Int64 // since when, in Unix nanoseconds; or inUse, given
}

// Close implements [net.Conn].
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

// CloseWrite ends one direction, as a connection of TCP can. The HTTP server calls it before
// Close, so that the last answer is not lost.
func (c *boundedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return net.ErrClosed
}

// roomInterval is the time between two looks for a connection to close where all are
// in use.
const roomInterval = 50 * time.Millisecond

// What boundedConn.idle is besides the instant since when the connection waits for its
// next request.
const (
	inUse = 0
	given = -1 // closed to make room
)

// room takes a slot for a connection. Where there is none, the connection that has
// waited longest for its next request is closed: its client opens another if it has
// one, while who is new could not come in at all. It reports false once the listener
// is closed.
func (l *boundedListener) room() bool {
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
		case <-time.After(roomInterval):
		}
	}
}

// closeIdle closes the connection that has been idle for longest, if one is.
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
	if oldest.idle.CompareAndSwap(since, given) { // else it has just been used
		oldest.Close()
	}
	return true
}

// noteIdle is an [http.Server]'s ConnState: it remembers since when connections wait.
func noteIdle(c net.Conn, state http.ConnState) {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	b, ok := c.(*boundedConn)
	if !ok {
		return
	}
	at := int64(inUse)
	if state == http.StateIdle {
		at = time.Now().UnixNano()
	}
	if old := b.idle.Load(); old != given {
		b.idle.CompareAndSwap(old, at)
	}
}

// An inFlightLimit bounds the requests that are answered at the same time.
type inFlightLimit struct {
	most    int64
	exempt  func(*http.Request) bool // what something else bounds; nil for nothing
	now     atomic.Int64
	refused atomic.Uint64
}

// isStream reports whether r, to the admin address, asks for a stream. The API bounds the
// number of streams.
func isStream(r *http.Request) bool {
	return r.URL.Path == "/v1/traffic/stream" || r.URL.Path == "/v1/watch"
}

// enter answers requests above the limit with 503, except the checks of health.
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
			answerProblem(w, r, http.StatusServiceUnavailable, "the server is answering as many requests as it may; try again soon")
			return
		}
		next.ServeHTTP(w, r)
	})
}
