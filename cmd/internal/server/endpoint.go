// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/metehq/mete/cmd/internal/config"
)

// An endpoint is one address and the HTTP server behind it.
type endpoint struct {
	listener *boundedListener
	server   *http.Server
	crowd    *crowd
	certs    *certificates // nil: plain HTTP
}

// maxStreams bounds the requests that one connection of HTTP/2 may have open.
const maxStreams = 250

// open listens at the address of the named setting, and begins to serve nothing yet.
func (e *endpoint) open(setting, address string, most int, tls config.TLS, log *slog.Logger) error {
	var err error
	if e.certs, err = newCertificates(tls, log); err != nil {
		return fmt.Errorf("TLS of %s: %w", setting, err)
	}
	l, err := listen(setting, address)
	if err == nil {
		e.listener = bounded(l, most)
	}
	return err
}

// listen opens the address that the named setting says.
func listen(setting, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err == nil {
		return l, nil
	}
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	err = fmt.Errorf("%s %s: %w", setting, address, err)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%w: stop the program that listens there, or choose another address", err)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("%w: ports below 1024 need a privilege: choose a higher one", err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("%w: no network interface has that address: 0.0.0.0 is all of them", err)
	}
	return nil, err
}

// newHTTPServer returns the server of an endpoint. Every wait of it has an end,
// but for requestTimeout, which is 0 where bodies are streams.
func newHTTPServer(c config.Config, log *slog.Logger, h http.Handler, requestTimeout time.Duration) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: c.Timeouts.ReadHeader,
		ReadTimeout:       requestTimeout,
		WriteTimeout:      requestTimeout,
		IdleTimeout:       c.Timeouts.Idle,
		MaxHeaderBytes:    c.MaxHeaderBytes,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ErrorLog:          newErrorLog(log),
		ConnState:         noteIdle,

		DisableGeneralOptionsHandler: true, // which answers "OPTIONS *" past every limit and bound
	}
}

// serve answers until the endpoint is shut down.
func (e *endpoint) serve() error {
	var err error
	if e.certs != nil {
		e.server.TLSConfig = e.certs.tlsConfig()
		err = e.server.ServeTLS(e.listener, "", "")
	} else {
		err = e.server.Serve(e.listener)
	}
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", e.listener.Addr(), err)
	}
	return nil
}

// shutdown takes no more connections and waits for the requests in flight
// until ctx ends, then cuts them off. It reports whether all had finished.
func (e *endpoint) shutdown(ctx context.Context) bool {
	if e.server.Shutdown(ctx) == nil {
		return true
	}
	e.server.Close()
	return false
}
