// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// idleTimeout is how long an unused connection to a server is kept.
	idleTimeout = 90 * time.Second

	// After pingAfter without traffic, an HTTP/2 connection is checked with a ping, which must be answered within
	// pingTimeout.
	pingAfter   = 15 * time.Second
	pingTimeout = 5 * time.Second

	// maxIdle is the maximum number of unused connections per server. With the default of [http.Transport], 2,
	// most requests of a burst would open a new connection.
	maxIdle = 256

	// continueTimeout is how long a client that sends Expect: 100-continue waits for a server that does not
	// support it.
	continueTimeout = time.Second

	// maxResponseHeader bounds the header of a response, and of each informational response.
	maxResponseHeader = 1 << 20

	// minExclusion and maxExclusion bound how long a server is excluded after a failed connection.
	minExclusion = time.Second
	maxExclusion = 30 * time.Second
)

type server struct {
	upstream  string
	url       url.URL // as configured
	scheme    string  // http or https
	ownHost   bool    // it gets its own name in Host
	basePath  string  // without a final slash
	baseRaw   string  // basePath, escaped
	transport *http.Transport
	upgrades  *http.Transport // HTTP/1, for requests that may upgrade; nil if the server has no HTTP/1
	dial      func(ctx context.Context, network, address string) (net.Conn, error)
	timeout   time.Duration // of dial and of the TLS handshake
	log       *slog.Logger
	began     time.Time // the zero of excludedUntil

	inFlight  atomic.Int64
	responses [6]atomic.Uint64 // by status class: index 2 is 2xx
	errors    atomic.Uint64
	changes   atomic.Uint64 // changes between up and down

	unhealthy     atomic.Bool  // the health checks fail
	excludedUntil atomic.Int64 // nanoseconds after began; 0 if the server is not excluded

	mu      sync.Mutex // guards the fields below, and changes of excludedUntil to and from 0
	fails   int        // consecutive failures
	probing bool       // a request is testing the server
}

func newServer(to url.URL, u Upstream, config Config) *server {
	s := &server{
		upstream: u.Name, url: to, scheme: to.Scheme,
		basePath: strings.TrimSuffix(to.Path, "/"), baseRaw: strings.TrimSuffix(to.EscapedPath(), "/"),
		ownHost: ownsHost(&to, config.RewriteHost), dial: config.Dial, timeout: u.DialTimeout, log: config.Logger, began: time.Now(),
	}
	protocols, only1 := new(http.Protocols), new(http.Protocols)
	only1.SetHTTP1(true)
	switch to.Scheme {
	case "h2c":
		s.scheme = "http"
		protocols.SetUnencryptedHTTP2(true)
		s.transport = s.newTransport(u, protocols)
	case "http":
		s.transport = s.newTransport(u, only1)
		s.upgrades = s.transport
	default:
		protocols.SetHTTP1(true)
		protocols.SetHTTP2(true)
		s.transport = s.newTransport(u, protocols, "h2", "http/1.1")
		s.upgrades = s.newTransport(u, only1, "http/1.1")
	}
	return s
}

// ownsHost reports whether a server gets its own name in Host.
func ownsHost(to *url.URL, rewrite *bool) bool {
	if rewrite != nil {
		return *rewrite
	}
	_, err := netip.ParseAddr(to.Hostname())
	return to.Scheme == "https" && err != nil
}

func (s *server) newTransport(u Upstream, protocols *http.Protocols, names ...string) *http.Transport {
	config := &tls.Config{}
	if u.TLS != nil {
		config = u.TLS.Clone()
	}
	if config.ServerName == "" {
		config.ServerName = s.url.Hostname()
	}
	config.NextProtos = names
	return &http.Transport{
		Protocols:   protocols,
		DialContext: s.connect,
		DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return s.connectTLS(ctx, network, address, config)
		},
		ResponseHeaderTimeout:  u.HeaderTimeout,
		MaxResponseHeaderBytes: maxResponseHeader,
		ExpectContinueTimeout:  continueTimeout,
		IdleConnTimeout:        idleTimeout,
		MaxIdleConnsPerHost:    maxIdle,
		DisableCompression:     true, // compression is between client and server

		// All requests share one connection. TCP alone would take too long to detect that it is dead.
		HTTP2: &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
	}
}

func (s *server) closeIdle() {
	s.transport.CloseIdleConnections()
	if s.upgrades != nil {
		s.upgrades.CloseIdleConnections()
	}
}

// A dialError means that the connection to a server failed, so nothing was sent.
type dialError struct{ err error }

func (e *dialError) Error() string { return e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

func (s *server) connect(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	conn, err := s.dial(ctx, network, address)
	return s.finishDial(ctx, conn, err)
}

func (s *server) connectTLS(ctx context.Context, network, address string, config *tls.Config) (net.Conn, error) {
	conn, err := s.connect(ctx, network, address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	encrypted := tls.Client(conn, config)
	if err := encrypted.HandshakeContext(ctx); err != nil {
		conn.Close()
		_, err = s.finishDial(ctx, nil, fmt.Errorf("TLS handshake: %w", err))
		return nil, err
	}
	return encrypted, nil
}

func (s *server) finishDial(ctx context.Context, conn net.Conn, err error) (net.Conn, error) {
	if err == nil {
		return conn, nil
	}
	if ctx.Err() != context.Canceled { // the caller did not give up
		s.exclude(err)
	}
	return nil, &dialError{err}
}

// sinceBegan converts at to the unit of excludedUntil. It never returns 0.
func (s *server) sinceBegan(at time.Time) int64 { return max(int64(at.Sub(s.began)), 1) }

func (s *server) usable(now time.Time) bool {
	return !s.unhealthy.Load() && s.exclusionLeft(now) <= 0
}

func (s *server) exclusionLeft(now time.Time) time.Duration {
	if out := s.excludedUntil.Load(); out != 0 {
		return time.Duration(out - s.sinceBegan(now))
	}
	return 0
}

// claim reports whether the caller may send a request to s. After an exclusion only one request may probe s; the
// others wait for its result.
func (s *server) claim(now time.Time) bool {
	out := s.excludedUntil.Load()
	if out == 0 {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.excludedUntil.Load() != out {
		return false
	}
	s.excludedUntil.Store(s.sinceBegan(now.Add(minExclusion)))
	s.probing = true
	return true
}

// exclude excludes s for a while. Concurrent failed dials count as one.
func (s *server) exclude(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.excludedUntil.Load() == 0
	if !first && !s.probing {
		return
	}
	hold := min(minExclusion<<min(s.fails, 10), maxExclusion)
	hold += time.Duration(rand.Int64N(int64(hold / 10)))
	s.excludedUntil.Store(s.sinceBegan(time.Now().Add(hold)))
	s.fails++
	s.probing = false
	if first {
		s.changes.Add(1)
		s.log.Warn("upstream server unreachable", "upstream", s.upstream, "server", s.url.String(), "err", cause)
	}
}

func (s *server) countResponse(status int) {
	s.responses[min(max(status/100, 0), 5)].Add(1)
	s.markReachable()
}

func (s *server) markReachable() {
	if s.excludedUntil.Load() == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.excludedUntil.Swap(0) != 0 {
		s.fails, s.probing = 0, false
		s.changes.Add(1)
		s.log.Info("upstream server reachable again", "upstream", s.upstream, "server", s.url.String())
	}
}

func (s *server) setUnhealthy(sick bool, cause error) {
	if s.unhealthy.Swap(sick) == sick {
		return
	}
	s.changes.Add(1)
	if sick {
		s.log.Warn("upstream server failed health checks", "upstream", s.upstream, "server", s.url.String(), "err", cause)
		return
	}
	s.log.Info("upstream server passed health checks", "upstream", s.upstream, "server", s.url.String())
}
