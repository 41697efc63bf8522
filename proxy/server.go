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
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// idleTimeout is how long an unused connection to a server is kept.
	idleTimeout = 90 * time.Second

	// pingAfter is how long a connection of HTTP/2 may bring nothing before its server is
	// asked whether it is there, and pingTimeout how long that may take to answer.
	pingAfter   = 15 * time.Second
	pingTimeout = 5 * time.Second

	// maxIdle is how many unused connections to a server are kept. The two that are
	// [http.Transport]'s default would have most requests of a burst connect anew.
	maxIdle = 256

	// continueTimeout is how long a client that asks first (Expect: 100-continue)
	// waits for a server that does not know how to answer that.
	continueTimeout = time.Second

	// maxAnswerHeader is how long the header of an answer may be, and each of those of
	// informational ones.
	maxAnswerHeader = 1 << 20

	// leastOut and mostOut bound how long a server is left out that could not be
	// connected to.
	leastOut = time.Second
	mostOut  = 30 * time.Second
)

// A server is one of an upstream's.
type server struct {
	upstream  string
	url       url.URL // as it was given
	scheme    string  // http or https
	basePath  string  // without a slash at its end
	baseRaw   string  // the same, escaped
	transport *http.Transport
	upgrades  *http.Transport // for requests that may upgrade their connection: HTTP/1, nil where it is not spoken
	dial      func(ctx context.Context, network, address string) (net.Conn, error)
	timeout   time.Duration // of dial, and of the TLS handshake
	log       *slog.Logger
	began     time.Time // what out counts from

	inFlight atomic.Int64
	answers  [6]atomic.Uint64 // by class: 2 is 2xx
	errors   atomic.Uint64
	changes  atomic.Uint64 // of up

	sick atomic.Bool  // so say the health checks
	out  atomic.Int64 // until when it is left out, in nanoseconds; 0: it is not

	mu      sync.Mutex // guards the fields below, and changes of out to and from 0
	fails   int        // tries in a row that have failed
	probing bool       // somebody tries whether it is up again
}

func newServer(to url.URL, u Upstream, config Config) *server {
	s := &server{
		upstream: u.Name, url: to, scheme: to.Scheme,
		basePath: strings.TrimSuffix(to.Path, "/"), baseRaw: strings.TrimSuffix(to.EscapedPath(), "/"),
		dial: config.Dial, timeout: u.DialTimeout, log: config.Logger, began: time.Now(),
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

// newTransport returns one that speaks those protocols, which TLS knows by these names.
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
		MaxResponseHeaderBytes: maxAnswerHeader,
		ExpectContinueTimeout:  continueTimeout,
		IdleConnTimeout:        idleTimeout,
		MaxIdleConnsPerHost:    maxIdle,
		DisableCompression:     true, // what is compressed is between client and server

		// All requests are on one connection: that it is dead must not take as long to
		// find out as TCP takes.
		HTTP2: &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
	}
}

// closeIdle closes the connections that are not in use.
func (s *server) closeIdle() {
	s.transport.CloseIdleConnections()
	if s.upgrades != nil {
		s.upgrades.CloseIdleConnections()
	}
}

// A dialError says that a server could not be connected to: nothing was sent.
type dialError struct{ err error }

func (e *dialError) Error() string { return e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

func (s *server) connect(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	conn, err := s.dial(ctx, network, address)
	return s.connected(ctx, conn, err)
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
		_, err = s.connected(ctx, nil, fmt.Errorf("TLS handshake: %w", err))
		return nil, err
	}
	return encrypted, nil
}

// connected takes notice of how a dial has ended.
func (s *server) connected(ctx context.Context, conn net.Conn, err error) (net.Conn, error) {
	if err == nil {
		return conn, nil
	}
	if ctx.Err() != context.Canceled { // nobody waited for it any more
		s.leaveOut(err)
	}
	return nil, &dialError{err}
}

// nanoseconds is an instant as out has it, never 0.
func (s *server) nanoseconds(at time.Time) int64 { return max(int64(at.Sub(s.began)), 1) }

// usable reports whether a request may go to s: it is up, or may be again.
func (s *server) usable(now time.Time) bool {
	return !s.sick.Load() && s.outFor(now) <= 0
}

// outFor is how long s is left out yet.
func (s *server) outFor(now time.Time) time.Duration {
	if out := s.out.Load(); out != 0 {
		return time.Duration(out - s.nanoseconds(now))
	}
	return 0
}

// claim reports whether the caller may send s a request. Of those who find that s,
// left out before, may be up again, one may; the others wait for what it finds.
func (s *server) claim(now time.Time) bool {
	out := s.out.Load()
	if out == 0 {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.out.Load() != out {
		return false
	}
	s.out.Store(s.nanoseconds(now.Add(leastOut)))
	s.probing = true
	return true
}

// leaveOut takes s for down for a while. Of the many dials that fail together, it
// counts one.
func (s *server) leaveOut(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.out.Load() == 0
	if !first && !s.probing {
		return
	}
	hold := min(leastOut<<min(s.fails, 10), mostOut)
	hold += time.Duration(rand.Int64N(int64(hold / 10)))
	s.out.Store(s.nanoseconds(time.Now().Add(hold)))
	s.fails++
	s.probing = false
	if first {
		s.changes.Add(1)
		s.log.Warn("upstream server unreachable", "upstream", s.upstream, "server", s.url.String(), "err", cause)
	}
}

// answered counts an answer.
func (s *server) answered(status int) {
	s.answers[min(max(status/100, 0), 5)].Add(1)
	s.reached()
}

// reached takes notice that s is there.
func (s *server) reached() {
	if s.out.Load() == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.out.Swap(0) != 0 {
		s.fails, s.probing = 0, false
		s.changes.Add(1)
		s.log.Info("upstream server reachable again", "upstream", s.upstream, "server", s.url.String())
	}
}

// setSick takes notice of what the health checks say.
func (s *server) setSick(sick bool, cause error) {
	if s.sick.Swap(sick) == sick {
		return
	}
	s.changes.Add(1)
	if sick {
		s.log.Warn("upstream server down, health checks fail", "upstream", s.upstream, "server", s.url.String(), "err", cause)
		return
	}
	s.log.Info("upstream server up, health checks succeed", "upstream", s.upstream, "server", s.url.String())
}
