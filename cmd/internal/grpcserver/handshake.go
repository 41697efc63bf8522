// SPDX-License-Identifier: Apache-2.0

package grpcserver

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/credentials"

	"github.com/metehq/mete/cmd/internal/connections"
)

// A handshake begins the connections of a server, with TLS or in plain text. It tells each call its connection.
type handshake struct{ server *Server }

// A Peer is the other end of a connection. Each call finds it with [google.golang.org/grpc/peer.FromContext].
type Peer struct {
	credentials.CommonAuthInfo

	// TLS is the state of the connection, or nil for plain text.
	TLS *tls.ConnectionState

	conn  *connections.Conn // nil if the listener is not of package connections
	calls atomic.Int64      // in progress
}

// AuthType implements [credentials.AuthInfo].
func (p *Peer) AuthType() string {
	if p.TLS == nil {
		return "insecure"
	}
	return "tls"
}

// begin records the start of a call.
func (p *Peer) begin() {
	if p.conn != nil && p.calls.Add(1) == 1 {
		p.conn.SetIdle(false)
	}
}

// end records the end of a call.
func (p *Peer) end() {
	if p.conn != nil && p.calls.Add(-1) == 0 {
		p.conn.SetIdle(true)
	}
}

var errStopping = errors.New("grpcserver: the server is stopping")

// ServerHandshake implements [credentials.TransportCredentials]. gRPC has set the deadline of the connection.
func (h *handshake) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	s := h.server
	if !s.opening.add(raw) {
		raw.Close()
		return nil, nil, errStopping
	}
	p := &Peer{CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.NoSecurity}}
	p.conn, _ = connections.Of(raw)
	if s.config.TLS == nil {
		return &countedConn{Conn: raw, raw: raw, peer: p, opening: &s.opening}, p, nil
	}
	conn := tls.Server(raw, s.config.TLS)
	err := conn.Handshake()
	state := conn.ConnectionState()
	if err == nil && state.NegotiatedProtocol != "h2" {
		err = errNoHTTP2
	}
	if err != nil {
		s.opening.remove(raw)
		conn.Close()
		return nil, nil, err
	}
	p.TLS, p.SecurityLevel = &state, credentials.PrivacyAndIntegrity
	return &countedConn{Conn: conn, raw: raw, peer: p, opening: &s.opening}, p, nil
}

var errNoHTTP2 = errors.New("grpcserver: the client does not offer h2 by ALPN")

// ClientHandshake implements [credentials.TransportCredentials].
func (h *handshake) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("grpcserver: these credentials are for servers")
}

// Info implements [credentials.TransportCredentials].
func (h *handshake) Info() credentials.ProtocolInfo {
	if h.server.config.TLS == nil {
		return credentials.ProtocolInfo{SecurityProtocol: "insecure"}
	}
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}

// Clone implements [credentials.TransportCredentials].
func (h *handshake) Clone() credentials.TransportCredentials { return h }

// OverrideServerName implements [credentials.TransportCredentials].
func (h *handshake) OverrideServerName(string) error { return nil }

// A countedConn ends the opening of its connection with the first byte of the client.
type countedConn struct {
	net.Conn
	raw     net.Conn
	peer    *Peer
	opening *openings
	opened  sync.Once
}

func (c *countedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.opened.Do(func() {
		c.opening.remove(c.raw)
		if c.peer.conn != nil {
			c.peer.conn.SetIdle(true)
		}
	})
	return n, err
}

// openings are the connections of clients that have sent nothing yet. gRPC waits for them at the end: without Close, a
// silent client would delay the shutdown by the whole timeout of the handshake.
type openings struct {
	mu     sync.Mutex // guards the fields below
	conns  map[net.Conn]struct{}
	closed bool
}

// add returns false if the server is stopping.
func (o *openings) add(c net.Conn) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return false
	}
	if o.conns == nil {
		o.conns = map[net.Conn]struct{}{}
	}
	o.conns[c] = struct{}{}
	return true
}

func (o *openings) remove(c net.Conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.conns, c)
}

// close closes all connections that are opening, and refuses later ones.
func (o *openings) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	for c := range o.conns {
		c.Close()
	}
	o.conns = nil
}
