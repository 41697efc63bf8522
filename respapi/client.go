// SPDX-License-Identifier: Apache-2.0

package respapi

import (
	"context"
	"net"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// A client is one connection. Its goroutine reads, executes and writes in turn. While a client does not read its
// replies, the server reads no commands of it, so it holds no more memory than one batch.
type client struct {
	server *Server
	nc     net.Conn
	id     uint64
	since  time.Time

	// The state that HELLO, AUTH and CLIENT change.
	resp3    bool
	admitted bool // AUTH succeeded, or is not necessary
	role     Role
	user     string // of AUTH
	name     string
	library  [2]string // lib-name and lib-ver

	quit    bool // close after the replies
	filled  bool // the last bytes filled the buffer
	lingers bool // let the client read the replies before the end

	// busy holds the buffers. It is nil while the client is idle, so that an idle connection costs little.
	busy  *buffers
	first [64]byte // for the first bytes after a pause

	authBy    time.Time    // the connection ends then if the client is not admitted
	writeBy   time.Time    // the write deadline that is set
	last      bool         // the server shuts down, and the client has had its last alarm
	active    bool         // bytes arrived since the last alarm
	idle      atomic.Int64 // for Server.replaceLongestIdle: the Unix time in nanoseconds since when it is idle, or 0
	idleSince time.Time    // the last alarm with active set: the client has been idle at least since then
}

func newClient(s *Server, nc net.Conn) *client {
	now := time.Now()
	c := &client{server: s, nc: nc, id: s.ids.Add(1), since: now, idleSince: now}
	c.noteIdle(now)
	c.admitted = true // so that logOut sets authBy
	c.logOut()
	return c
}

// logOut gives the client the rights that it has without AUTH. Only an admitted client gets new time for AUTH:
// otherwise a stranger could keep its place with RESET.
func (c *client) logOut() {
	before := c.admitted
	c.role, c.user = c.server.config.Anonymous, ""
	c.admitted = c.role > RoleNone
	if before && !c.admitted {
		c.authBy = time.Now().Add(c.server.config.HandshakeTimeout)
	}
}

// serve serves the client until the connection ends. A panic ends only this connection.
func (c *client) serve() {
	defer c.nc.Close()
	defer func() {
		if v := recover(); v != nil {
			c.server.config.Log.Error("panic in a RESP connection", "panic", v, "stack", string(debug.Stack()))
		}
	}()
	if err := shakeHands(c.server.ctx, c.nc, c.server.config.HandshakeTimeout); err != nil {
		return
	}
	c.setReadDeadline(c.quietDeadline())
	if raw := rawConn(c.nc); raw != nil {
		c.serveRaw(raw)
	} else {
		for c.read() && c.respond() {
		}
	}
	if c.lingers {
		linger(c.nc)
	}
	c.busy.release()
}

// respond executes the commands that have arrived, and writes their replies. It returns false if the connection must
// end.
func (c *client) respond() bool {
	ok := c.executeAll()
	if !c.flush() {
		return false
	}
	if !ok {
		c.lingers = true
		return false
	}
	if in := &c.busy.in; in.isEmpty() && (len(in.buf) > bufferBytes || c.filled && len(in.buf) < bufferBytes) {
		in.resize() // after a large command or a long pipeline
	}
	return true
}

// executeAll executes the commands that have arrived. It returns false if the connection must end.
func (c *client) executeAll() bool {
	in, executed := &c.busy.in, uint64(0)
	defer func() { c.server.commands.Add(executed) }()
	for {
		in.known = c.admitted
		args, err := in.next()
		switch {
		case err != "":
			c.busy.protocolError(err)
			return false
		case args == nil:
			return true
		}
		c.execute(args)
		executed++
		if c.quit {
			return false
		}
		if len(c.busy.out) >= flushBytes && !c.flush() {
			return false
		}
	}
}

// flush writes the replies. It returns false if the client does not read them.
func (c *client) flush() bool {
	if len(c.busy.out) == 0 {
		return true
	}
	// A deadline per write would cost as much as a decision.
	if now, timeout := time.Now(), c.server.config.WriteTimeout; c.writeBy.Sub(now) < timeout/2 {
		c.writeBy = now.Add(timeout)
		c.nc.SetWriteDeadline(c.writeBy)
	}
	_, err := c.nc.Write(c.busy.out)
	if c.busy.out = c.busy.out[:0]; cap(c.busy.out) > 2*flushBytes {
		c.busy.out = make([]byte, 0, flushBytes) // after a large reply
	}
	return err == nil
}

// read waits for bytes. It returns false if the connection must end.
func (c *client) read() bool {
	for {
		space := c.space()
		if len(space) == 0 {
			return false
		}
		n, err := c.nc.Read(space)
		if n > 0 {
			c.receive(n)
			return true
		}
		if !c.survive(err) {
			return false
		}
	}
}

// space returns memory for the next bytes, or nil if the buffer has reached its bound.
func (c *client) space() []byte {
	if c.busy == nil {
		return c.first[:]
	}
	return c.busy.in.space()
}

// receive adds n bytes in space to the commands.
func (c *client) receive(n int) {
	if c.busy == nil {
		c.busy = newBuffers(c.resp3)
		copy(c.busy.in.space(), c.first[:n])
		c.setReadDeadline(c.busyDeadline())
	}
	c.busy.in.end += n
	c.filled = c.busy.in.end == len(c.busy.in.buf)
	c.active = true
	if c.idle.Load() != 0 {
		c.noteIdle(time.Time{})
	}
}

// shakeHands executes the handshake of TLS. Without TLS it does nothing.
func shakeHands(ctx context.Context, nc net.Conn, timeout time.Duration) error {
	secure, ok := nc.(interface {
		HandshakeContext(context.Context) error
	})
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return secure.HandshakeContext(ctx)
}

const (
	lingerTime  = time.Second
	lingerBytes = 256 << 10
)

// linger lets the client read the last reply. If a connection is closed while bytes of the client are unread, the
// system discards that reply.
func linger(nc net.Conn) {
	half, ok := nc.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	nc.SetReadDeadline(time.Now().Add(lingerTime))
	var scrap [1024]byte
	for read := 0; read < lingerBytes; {
		n, err := nc.Read(scrap[:])
		if err != nil {
			return
		}
		read += n
	}
}
