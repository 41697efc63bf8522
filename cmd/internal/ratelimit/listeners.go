// SPDX-License-Identifier: Apache-2.0

package ratelimit

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"syscall"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"

	"github.com/metehq/mete/cmd/internal/buildinfo"
	"github.com/metehq/mete/cmd/internal/certificates"
	"github.com/metehq/mete/cmd/internal/connections"
	"github.com/metehq/mete/cmd/internal/grpcserver"
	"github.com/metehq/mete/cmd/internal/metrics"
)

// Bounds of the listeners. The HTTP listeners serve few clients.
const (
	grpcConnections = 10_000
	httpConnections = 1000
	readTimeout     = 10 * time.Second
	writeTimeout    = 10 * time.Second
	profileTimeout  = 5 * time.Minute // of the debug port, for profiles
	idleTimeout     = 2 * time.Minute
	maxHeaderBytes  = 16 << 10
)

// healthName is the name of the service in the original's health service.
const healthName = "ratelimit"

// A listener serves one address.
type listener struct {
	name     string
	addr     net.Addr
	serve    func() error
	shutdown func(context.Context) error
	release  func() // closes the address; it may be closed already
}

// listen opens all addresses. The gRPC listener stops first, so that /healthcheck reports the end of the service.
func (r *Server) listen(running context.Context) error {
	s := &r.settings
	health := &healthCheck{stopping: r.stopping, target: r.target, needDomain: s.NeedDomain}
	if s.WatchStore {
		health.ping = r.store.Ping
		if r.store.guard != nil {
			health.ping = r.store.guard.Ping
		}
	}
	calls := newCallMetrics(s.Milliseconds)
	if err := r.listenGRPC(running, health, calls); err != nil {
		return err
	}
	var err error
	mux := http.NewServeMux()
	mux.Handle("/json", &jsonHandler{service: r.service})
	mux.Handle("/healthcheck", health)
	if r.HTTP, err = r.listenHTTP("HTTP", "HOST, PORT", join2(s.HTTPHost, s.HTTPPort), writeTimeout, mux); err != nil {
		return err
	}
	if r.Debug, err = r.listenHTTP("debug", "DEBUG_HOST, DEBUG_PORT", join2(s.DebugHost, s.DebugPort), profileTimeout, newDebugHandler(r.service, s.Profiles)); err != nil {
		return err
	}
	if !s.Prometheus || s.DisableStats {
		return nil
	}
	r.stats = metrics.New()
	r.stats.Add(metrics.Limiter(r.limiter.Stats), r.store.Metrics(), metrics.Build(buildinfo.Read))
	if r.store.guard != nil {
		r.stats.Add(metrics.Guard(r.store.guard.Stats))
	}
	r.stats.Register(counterCollector{r.service.Counters}, calls.total, calls.took)
	mux = http.NewServeMux()
	mux.Handle(s.MetricsPath, r.stats)
	r.Metrics, err = r.listenHTTP("metrics", "PROMETHEUS_ADDR", s.MetricsAddr, writeTimeout, mux)
	return err
}

func join2(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }

func (r *Server) listenGRPC(running context.Context, health *healthCheck, calls *callMetrics) error {
	s := &r.settings
	c := grpcserver.Config{
		Health: health.check, HealthNames: []string{healthName},
		Interceptors: []grpc.UnaryServerInterceptor{calls.observe, r.traces.TraceCall},
		MaxAge:       unbounded(s.MaxConnectionAge), AgeGrace: unbounded(s.MaxConnectionAgeGrace),
		Log: r.log,
	}
	if s.ServerTLS.Enabled {
		certs, err := certificates.Open(certificates.Files{Cert: s.ServerTLS.Cert, Key: s.ServerTLS.Key, ClientCA: s.ServerTLS.Authority}, []string{"h2"}, r.log)
		if err != nil {
			return fmt.Errorf("GRPC_SERVER_TLS_CERT, GRPC_SERVER_TLS_KEY, GRPC_CLIENT_TLS_CACERT: %w", err)
		}
		r.goRun(running, certs.Follow)
		c.TLS = certs.TLSConfig()
		if s.ClientName != "" {
			requireName(c.TLS, s.ClientName)
		}
	}
	network, address, setting := "tcp", join2(s.GRPCHost, s.GRPCPort), "GRPC_HOST, GRPC_PORT"
	if s.GRPCSocket != "" {
		network, address, setting = "unix", s.GRPCSocket, "GRPC_UDS"
		removeSocket(address)
	}
	l, err := openAddress(network, address, setting)
	if err != nil {
		return err
	}
	server := grpcserver.New(c)
	ratelimitv3.RegisterRateLimitServiceServer(server, r.service)
	r.GRPC = l.Addr()
	r.listeners = append(r.listeners, listener{
		name: "gRPC", addr: l.Addr(),
		serve:    func() error { return server.Serve(connections.New(l, grpcConnections)) },
		shutdown: server.Shutdown,
		release:  func() { l.Close() },
	})
	return nil
}

// unbounded returns a duration for package grpcserver. In the settings, 0 is no bound.
func unbounded(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}

// requireName changes c to accept only client certificates for a DNS name.
func requireName(c *tls.Config, name string) {
	current := c.GetConfigForClient
	c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		now, err := current(hello)
		if err != nil {
			return nil, err
		}
		now = now.Clone()
		now.VerifyConnection = func(state tls.ConnectionState) error {
			return state.PeerCertificates[0].VerifyHostname(name)
		}
		return now, nil
	}
}

func (r *Server) listenHTTP(name, setting, address string, timeout time.Duration, h http.Handler) (net.Addr, error) {
	l, err := openAddress("tcp", address, setting)
	if err != nil {
		return nil, err
	}
	server := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: readTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      timeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ConnState: func(c net.Conn, state http.ConnState) {
			if b, ok := connections.Of(c); ok {
				b.SetIdle(state == http.StateIdle)
			}
		},
	}
	r.listeners = append(r.listeners, listener{
		name: name, addr: l.Addr(),
		serve: func() error {
			if err := server.Serve(connections.New(l, httpConnections)); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		},
		shutdown: func(ctx context.Context) error {
			if err := server.Shutdown(ctx); err != nil {
				server.Close()
				return err
			}
			return nil
		},
		release: func() { l.Close() },
	})
	return l.Addr(), nil
}

// removeSocket removes a socket that no process serves anymore.
func removeSocket(path string) {
	if info, err := os.Lstat(path); err != nil || info.Mode().Type() != os.ModeSocket {
		return
	}
	if conn, err := net.Dial("unix", path); err == nil {
		conn.Close()
		return
	}
	_ = os.Remove(path)
}

// openAddress opens an address. Errors name its settings and a remedy.
func openAddress(network, address, setting string) (net.Listener, error) {
	l, err := net.Listen(network, address)
	if err == nil {
		return l, nil
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	err = fmt.Errorf("%s: %s: %w", setting, address, err)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%w: stop the program that listens there, or set another address", err)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("%w: choose a port above 1023, or a writable directory for a socket", err)
	}
	return nil, err
}
