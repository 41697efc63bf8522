// SPDX-License-Identifier: Apache-2.0

package respapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/metehq/mete"
)

// ErrServerClosed is the result of [Server.Serve] after [Server.Shutdown].
var ErrServerClosed = errors.New("respapi: server closed")

// A Server serves the clients of its listeners. It is safe for concurrent use. Use [New]: the zero Server is not
// usable.
type Server struct {
	lim      *mete.Limiter
	throttle *mete.Limiter
	config   Config
	limits   limitCache
	known    atomic.Pointer[knownAttributes]
	started  time.Time
	runID    string

	ctx    context.Context // of all decisions; done when Shutdown stops waiting
	cancel context.CancelFunc

	mu         sync.Mutex // guards the fields below
	listeners  map[net.Listener]struct{}
	clients    map[*client]struct{}
	nextSearch time.Time      // no client can be replaced before
	serving    sync.WaitGroup // a count for each client, also for the replaced ones

	closing   atomic.Bool
	refusing  atomic.Int64 // clients that get an error instead of service
	ids       atomic.Uint64
	accepted  atomic.Uint64
	rejected  atomic.Uint64
	replaced  atomic.Uint64
	commands  atomic.Uint64
	connected atomic.Int64
}

// Stats are counts of a server since its start.
type Stats struct {
	Clients  int    // connected now
	Accepted uint64 // connections, including the rejected ones
	Rejected uint64 // connections above [Config.MaxClients]
	Replaced uint64 // idle clients that were disconnected for a new one
	Commands uint64 // executed, including failed ones
}

// New returns a server that decides with lim.
func New(lim *mete.Limiter, config Config) (*Server, error) {
	if err := config.complete(lim); err != nil {
		return nil, err
	}
	s := &Server{
		lim: lim, throttle: config.Throttle, config: config, started: time.Now(), runID: newRunID(),
		listeners: map[net.Listener]struct{}{}, clients: map[*client]struct{}{},
	}
	if s.throttle == nil {
		var err error
		if s.throttle, err = mete.New(lim.Store(), nil, mete.Config{}); err != nil {
			return nil, fmt.Errorf("respapi: new: %w", err)
		}
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// Serve accepts connections until the listener fails or [Server.Shutdown] closes it, and then returns
// [ErrServerClosed]. It closes the listener. For TLS, pass a listener of crypto/tls: the handshake does not delay
// other clients.
func (s *Server) Serve(l net.Listener) error {
	defer l.Close()
	if !s.addListener(l) {
		return ErrServerClosed
	}
	defer s.removeListener(l)
	var pause time.Duration
	for {
		nc, err := l.Accept()
		switch {
		case err == nil:
			pause = 0
			s.accepted.Add(1)
			s.admit(nc)
			continue
		case s.closing.Load():
			return ErrServerClosed
		}
		if temporary, ok := err.(interface{ Temporary() bool }); !ok || !temporary.Temporary() {
			return fmt.Errorf("respapi: accept: %w", err)
		}
		pause = min(max(2*pause, 5*time.Millisecond), time.Second) // the process may be out of file descriptors
		s.config.Log.Error("accept failed", "listener", "resp", "err", err, "retry_in", pause)
		select {
		case <-time.After(pause):
		case <-s.ctx.Done():
		}
	}
}

func (s *Server) addListener(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing.Load() {
		return false
	}
	s.listeners[l] = struct{}{}
	return true
}

func (s *Server) removeListener(l net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, l)
}

// admit starts to serve a connection, or refuses it.
func (s *Server) admit(nc net.Conn) {
	c := newClient(s, nc)
	s.mu.Lock()
	full := len(s.clients) >= s.config.MaxClients && !s.replaceLongestIdle(time.Now())
	if s.closing.Load() || full {
		s.mu.Unlock()
		if full {
			s.rejected.Add(1)
			s.refuse(nc)
			return
		}
		nc.Close()
		return
	}
	s.clients[c] = struct{}{}
	s.connected.Add(1)
	s.serving.Add(1)
	s.mu.Unlock()
	go func() {
		defer s.forget(c)
		c.serve()
	}()
}

func (s *Server) forget(c *client) {
	s.mu.Lock()
	s.drop(c)
	s.mu.Unlock()
	s.serving.Done()
}

// maxRefusing bounds the connections that get an error at a time. Further ones are closed without it.
const maxRefusing = 64

// refuse tells a client that the server is full, and closes its connection.
func (s *Server) refuse(nc net.Conn) {
	if s.refusing.Add(1) > maxRefusing {
		s.refusing.Add(-1)
		nc.Close()
		return
	}
	go func() {
		defer s.refusing.Add(-1)
		defer nc.Close()
		if err := shakeHands(s.ctx, nc, s.config.HandshakeTimeout); err != nil {
			return
		}
		nc.SetWriteDeadline(time.Now().Add(s.config.WriteTimeout))
		if _, err := nc.Write([]byte("-ERR max number of clients reached\r\n")); err == nil {
			linger(nc)
		}
	}()
}

// Shutdown closes the listeners and idle connections, lets the other connections finish the commands that they have
// received, and closes them. When ctx is done, it ends those commands, closes all connections and returns the error of ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.closing.Store(true)
	for l := range s.listeners {
		l.Close()
	}
	for c := range s.clients {
		c.wake()
	}
	s.mu.Unlock()
	done := make(chan struct{})
	go func() {
		s.serving.Wait()
		close(done)
	}()
	defer s.cancel()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	s.cancel()
	s.mu.Lock()
	for c := range s.clients {
		c.nc.Close()
	}
	s.mu.Unlock()
	<-done
	return ctx.Err()
}

// Stats returns the current counts.
func (s *Server) Stats() Stats {
	return Stats{
		Clients: int(s.connected.Load()), Accepted: s.accepted.Load(), Rejected: s.rejected.Load(),
		Replaced: s.replaced.Load(), Commands: s.commands.Load(),
	}
}
