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
	listener net.Listener
	server   *http.Server
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
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
}

// serve answers until the endpoint is shut down.
func (e *endpoint) serve() error {
	if err := e.server.Serve(e.listener); !errors.Is(err, http.ErrServerClosed) {
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
