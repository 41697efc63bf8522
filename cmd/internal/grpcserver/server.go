// SPDX-License-Identifier: Apache-2.0

// Package grpcserver serves gRPC within bounds: connections, streams, messages, calls in flight and idle time. It
// adds the health service and reflection, and it shuts down gracefully.
package grpcserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
)

// Defaults of [Config].
const (
	DefaultMaxStreams       = 1000             // Envoy opens one connection per worker thread
	DefaultMaxInFlight      = 10_000           // as max_in_flight of the main address
	DefaultMaxMessageBytes  = 4 << 20          // as in gRPC itself
	DefaultMaxHeaderBytes   = 16 << 10         // as max_header_bytes of the main address
	DefaultIdleTimeout      = 2 * time.Minute  // as timeouts.idle
	DefaultHandshakeTimeout = 5 * time.Second  // as timeouts.read_header
	DefaultMaxAge           = time.Hour        // so that clients notice new replicas
	DefaultAgeGrace         = 10 * time.Second // as timeouts.drain
)

const (
	// readBuffer is smaller than the default of gRPC, 32 KiB, because each idle connection has one.
	readBuffer = 4 << 10

	// minPing is the shortest interval between keepalive pings of a client. gRPC allows 5 minutes by default, and
	// clients that ping more often lose their connections.
	minPing = 5 * time.Second

	// pingInterval and pingTimeout find connections to peers that have disappeared.
	pingInterval = time.Minute
	pingTimeout  = 20 * time.Second

	// maxLongStreams bounds the streams of health watches and reflection.
	maxLongStreams = 1000
)

// A Config configures a [Server]. The zero value of a number is its default; a negative duration is no bound.
type Config struct {
	// Health returns why the server should receive no calls, or nil. The health service then reports NOT_SERVING. A
	// nil function reports that the server is healthy.
	Health func(context.Context) error

	// HealthNames are further names of the server for the health service.
	HealthNames []string

	// Authorize returns an error with a gRPC status for callers without access. It may add values to the context.
	// It is not called for the health service. A nil function allows all callers.
	Authorize func(context.Context) (context.Context, error)

	// Interceptors are called for unary calls within all bounds, the first one first.
	Interceptors []grpc.UnaryServerInterceptor

	// TLS encrypts the connections. It is nil for plain text. Its ALPN protocols must contain h2.
	TLS *tls.Config

	MaxStreams      uint32 // concurrent streams of one connection
	MaxInFlight     int    // concurrent unary calls; more get UNAVAILABLE
	MaxMessageBytes int    // of a request; larger ones get RESOURCE_EXHAUSTED
	MaxHeaderBytes  uint32 // of a request's metadata

	HandshakeTimeout time.Duration // for TLS and the first bytes of HTTP/2
	IdleTimeout      time.Duration // of a connection without streams
	MaxAge, AgeGrace time.Duration // of a connection, and the rest of the time for its calls

	// Log receives panics. The default discards them.
	Log *slog.Logger
}

// A Server is a bounded gRPC server. Register services with the generated functions before [Server.Serve]. It is
// safe for concurrent use.
type Server struct {
	config   Config
	server   *grpc.Server
	opening  openings
	stopping chan struct{} // closed by Shutdown
	stop     sync.Once

	inFlight atomic.Int64
	refused  atomic.Uint64
	streams  atomic.Int64 // health watches and reflection
}

// New returns a server with the health service and reflection.
func New(c Config) *Server {
	setDefaults(&c)
	s := &Server{config: c, stopping: make(chan struct{})}
	s.server = grpc.NewServer(
		grpc.Creds(&handshake{server: s}),
		grpc.ChainUnaryInterceptor(append([]grpc.UnaryServerInterceptor{s.enterCall}, c.Interceptors...)...),
		grpc.StreamInterceptor(s.enterStream),
		grpc.ConnectionTimeout(c.HandshakeTimeout),
		grpc.MaxConcurrentStreams(c.MaxStreams),
		grpc.MaxRecvMsgSize(c.MaxMessageBytes),
		grpc.MaxHeaderListSize(c.MaxHeaderBytes),
		grpc.ReadBufferSize(readBuffer),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPing, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionIdle: bound(c.IdleTimeout), MaxConnectionAge: bound(c.MaxAge), MaxConnectionAgeGrace: bound(c.AgeGrace),
			Time: pingInterval, Timeout: pingTimeout,
		}),
	)
	grpc_health_v1.RegisterHealthServer(s.server, &health{server: s})
	reflection.Register(s.server)
	return s
}

func setDefaults(c *Config) {
	setDefault(&c.MaxStreams, DefaultMaxStreams)
	setDefault(&c.MaxInFlight, DefaultMaxInFlight)
	setDefault(&c.MaxMessageBytes, DefaultMaxMessageBytes)
	setDefault(&c.MaxHeaderBytes, DefaultMaxHeaderBytes)
	setDefault(&c.HandshakeTimeout, DefaultHandshakeTimeout)
	setDefault(&c.IdleTimeout, DefaultIdleTimeout)
	setDefault(&c.MaxAge, DefaultMaxAge)
	setDefault(&c.AgeGrace, DefaultAgeGrace)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
}

func setDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// bound returns a duration for gRPC, which treats 0 as no bound.
func bound(d time.Duration) time.Duration { return max(d, 0) }

// RegisterService implements [grpc.ServiceRegistrar].
func (s *Server) RegisterService(d *grpc.ServiceDesc, service any) {
	s.server.RegisterService(d, service)
}

// Serve serves the connections of l until Shutdown and then returns nil. A listener of package connections bounds
// their number: the server reports its idle connections.
func (s *Server) Serve(l net.Listener) error {
	err := s.server.Serve(l)
	select {
	case <-s.stopping:
		return nil
	default:
	}
	if err == nil {
		err = errors.New("the server ended without Shutdown")
	}
	return fmt.Errorf("grpcserver: serve %s: %w", l.Addr(), err)
}

// Shutdown stops accepting connections and waits for the calls in flight. The health service reports NOT_SERVING,
// and its watches end. If ctx ends first, Shutdown closes all connections and returns the error of ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stop.Do(func() { close(s.stopping) })
	s.opening.close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.server.GracefulStop()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		s.server.Stop()
		<-done
		return fmt.Errorf("grpcserver: shutdown: %w", ctx.Err())
	}
}

// CountInFlight returns the number of unary calls in progress.
func (s *Server) CountInFlight() int64 { return s.inFlight.Load() }

// CountRefused returns the number of calls above the bounds of the server.
func (s *Server) CountRefused() uint64 { return s.refused.Load() }
