// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/metehq/mete/cmd/internal/certificates"
	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/cmd/internal/connections"
	"github.com/metehq/mete/cmd/internal/metrics"
)

// Bounds of the admin address, which serves few clients.
const (
	adminConnections = 256
	adminInFlight    = 64
)

// maxStreams bounds the concurrent streams of an HTTP/2 connection.
const maxStreams = 250

// httpProtocols are the protocols of the HTTP addresses for ALPN.
var httpProtocols = []string{"h2", "http/1.1"}

// A socket is an open address without a server.
type socket struct {
	*connections.Listener
	tls     *tls.Config      // nil: plain HTTP
	expires func() time.Time // end of the certificate; zero for none
}

// openSocket opens an address with at most so many connections. With TLS, the server offers protocols by ALPN.
func (a *assembly) openSocket(setting, address string, most int, files config.TLS, protocols ...string) (*socket, error) {
	s := &socket{expires: func() time.Time { return time.Time{} }}
	if files.On() {
		certs, err := certificates.Open(certificates.Files(files), protocols, a.log)
		if err != nil {
			return nil, fmt.Errorf("TLS of %s: %w", setting, err)
		}
		a.add(background("certificates of "+setting, certs.Follow))
		s.tls, s.expires = certs.TLSConfig(), certs.Expires
	}
	l, err := listen(setting, address)
	if err != nil {
		return nil, err
	}
	a.add(newCloser(setting, func() { l.Close() }))
	s.Listener = connections.New(l, most)
	return s, nil
}

// noteIdle records the start of a connection's idle time. It is an [http.Server.ConnState] hook.
func noteIdle(c net.Conn, state http.ConnState) {
	if b, ok := connections.Of(c); ok {
		b.SetIdle(state == http.StateIdle)
	}
}

// listen opens an address and adds a remedy to common errors. Errors refer to the address by setting.
func listen(setting, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err == nil {
		return l, nil
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	err = fmt.Errorf("%s %s: %w", setting, address, err)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%w: stop the program that listens there, or choose another address", err)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("%w: ports below 1024 require privileges: choose a higher one", err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("%w: no network interface has that address: use 0.0.0.0 for all interfaces", err)
	}
	return nil, err
}

type httpListener struct {
	name     string
	socket   *socket
	inFlight *inFlightLimit
	server   *http.Server

	// drain waits for hijacked connections until ctx ends.
	drain func(context.Context)
}

// newHTTPListener returns the listener for a handler. All its timeouts are finite except requestTimeout, which is
// 0 if the handler streams bodies.
func newHTTPListener(name string, s *socket, limit *inFlightLimit, h http.Handler, t config.Timeouts, requestTimeout time.Duration, maxHeader int, log *slog.Logger) *httpListener {
	server := &http.Server{
		Handler:           limit.enter(h),
		ReadHeaderTimeout: t.ReadHeader,
		ReadTimeout:       requestTimeout,
		WriteTimeout:      requestTimeout,
		IdleTimeout:       t.Idle,
		TLSConfig:         s.tls,
		MaxHeaderBytes:    maxHeader,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ErrorLog:          newErrorLog(log),
		ConnState:         noteIdle,

		DisableGeneralOptionsHandler: true, // it would answer "OPTIONS *" without limits
	}
	return &httpListener{name: name, socket: s, inFlight: limit, server: server, drain: func(context.Context) {}}
}

func (l *httpListener) Serve() error {
	var err error
	if l.socket.tls != nil {
		err = l.server.ServeTLS(l.socket, "", "")
	} else {
		err = l.server.Serve(l.socket)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve %s: %w", l.socket.Addr(), err)
}

func (l *httpListener) Shutdown(ctx context.Context) error {
	err := l.server.Shutdown(ctx)
	if err != nil {
		l.server.Close()
	}
	l.drain(ctx) // last, because a request may still upgrade its connection
	return err
}

func (l *httpListener) stats() metrics.Listener {
	return metrics.Listener{
		Name: l.name, Connections: l.socket.CountOpen(), CertificateExpires: l.socket.expires(),
		InFlight: l.inFlight.now.Load(), Refused: l.inFlight.refused.Load(), Full: l.socket.CountFull(),
	}
}
