// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

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
	since := int64(0)
	for c := range l.conns {
		if at := c.idle.Load(); at > 0 && (oldest == nil || at < since) {
			oldest, since = c, at
		}
	}
	l.mu.Unlock()
	if oldest == nil {
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
