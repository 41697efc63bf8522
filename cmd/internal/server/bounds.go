// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// Bounds of the admin address: a few people, programs and scrapers.
const (
	adminConnections = 256
	adminInFlight    = 64
)

// A boundedListener has at most so many connections open at once. More wait in the
// system's queue, and are refused there when it is full, too.
type boundedListener struct {
	net.Listener
	slots  chan struct{}
	closed chan struct{}
	once   sync.Once
}

func bounded(l net.Listener, most int) *boundedListener {
	return &boundedListener{Listener: l, slots: make(chan struct{}, most), closed: make(chan struct{})}
}

// Accept implements [net.Listener].
func (l *boundedListener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &boundedConn{Conn: c, slots: l.slots}, nil
}

// Close implements [net.Listener].
func (l *boundedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// open is the number of connections.
func (l *boundedListener) open() int { return len(l.slots) }

type boundedConn struct {
	net.Conn
	once  sync.Once
	slots chan struct{}
}

// Close implements [net.Conn].
func (c *boundedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { <-c.slots })
	return err
}

// CloseWrite ends one direction, as a connection of TCP can: net/http does it before
// it closes a connection, so that its last answer is not lost.
func (c *boundedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return net.ErrClosed
}

// A crowd bounds how many requests are answered at once.
type crowd struct {
	most    int64
	now     atomic.Int64
	refused atomic.Uint64
}

// enter answers with 503 what is too much. What asks whether the server is there is
// never that.
func (c *crowd) enter(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
