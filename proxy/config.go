// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"
)

// Defaults of a [Config].
const (
	DefaultDialTimeout    = 5 * time.Second
	DefaultHeaderTimeout  = 30 * time.Second
	DefaultClientTimeout  = time.Minute
	DefaultUpgradeTimeout = 10 * time.Minute
)

// Config are a [Proxy]'s settings. In the zero Config every timeout has its
// default and bodies are not bounded. There is no timeout for a request as a
// whole, which may stream for days: the client and its context end it.
type Config struct {
	// DialTimeout bounds how long it may take to connect to a server, and then
	// again how long the TLS handshake may. If zero, DefaultDialTimeout.
	DialTimeout time.Duration

	// HeaderTimeout bounds how long a server may take, from the end of the
	// request to the header of the answer. If zero, DefaultHeaderTimeout.
	HeaderTimeout time.Duration

	// BodyTimeout bounds how long the body of an answer may stand still because the
	// server sends nothing. If zero, there is no bound: streams may be silent.
	BodyTimeout time.Duration

	// ClientTimeout bounds how long a client may let a body stand still: one that
	// does not go on with its own, before the answer has begun, or does not take
	// what it is sent. If zero, DefaultClientTimeout; below zero, there is no bound.
	ClientTimeout time.Duration

	// UpgradeTimeout bounds how long nothing may go through an upgraded connection, such
	// as a WebSocket, in either direction; both sides of it are then closed. That is no
	// error. What waits for a side that does not read goes nowhere. If zero,
	// DefaultUpgradeTimeout; below zero, there is no bound.
	UpgradeTimeout time.Duration

	// MaxBodyBytes bounds the body of a request. If zero, there is no bound.
	MaxBodyBytes int64

	// RewriteHost sends the upstream its own name in Host, in place of the one
	// the client asked for.
	RewriteHost bool

	// Upgrades are the protocols that a connection may be upgraded to, in any case.
	// If nil, "websocket" alone; if empty, none. What asks for another is sent on without: who
	// could upgrade to one that carries requests, such as h2c, would send them past
	// every limit.
	Upgrades []string

	// UnderscoresInHeaders is what becomes of header fields whose names have "_", or any
	// other character but letters, digits and "-". Programs behind CGI, WSGI, Rack or PHP
	// read X_Api_Key as X-Api-Key, and rules do not. "drop", or empty: they are not
	// sent on. "pass": they are, but for those that would be read as one that the proxy
	// writes or removes; one that looks like a name that an enforced rule reads is answered
	// with 400. "refuse": the request is answered with 400.
	UnderscoresInHeaders string

	// Dial connects to a server. If nil, a [net.Dialer] does. It must be safe for
	// concurrent use.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// Observe, if set, is told of requests that were sent on: how long it took from the
	// end of the body until the header of the answer came, or something else in its place, and
	// whether it failed: an error, 429, or 5xx but 501. It is not told of what clients
	// break off, nor of answers that begin before the body has ended. It must be safe for
	// concurrent use. The Observe of an adaptive.Controller fits.
	Observe func(latency time.Duration, err error)

	// OnError, if set, is called with what is answered with 502 or 504, or breaks
	// off in the middle of an answer because of the upstream, and with the request as
	// it was made to the upstream. It must be safe for concurrent
	// use. A client that has gone is no error.
	OnError func(*http.Request, error)

	// Logger is told when a server is taken for down, and for up again. If nil,
	// nobody is.
	Logger *slog.Logger
}

// withDefaults returns c with its zero values filled in.
func (c Config) withDefaults() Config {
	if c.DialTimeout == 0 {
		c.DialTimeout = DefaultDialTimeout
	}
	if c.HeaderTimeout == 0 {
		c.HeaderTimeout = DefaultHeaderTimeout
	}
	if c.ClientTimeout == 0 {
		c.ClientTimeout = DefaultClientTimeout
	}
	if c.UpgradeTimeout == 0 {
		c.UpgradeTimeout = DefaultUpgradeTimeout
	}
	if c.OnError == nil {
		c.OnError = func(*http.Request, error) {}
	}
	if c.Dial == nil {
		c.Dial = new(net.Dialer).DialContext
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Upgrades == nil {
		c.Upgrades = []string{"websocket"}
	}
	return c
}

func (c Config) check() error {
	var errs []error
	if c.DialTimeout < 0 || c.HeaderTimeout < 0 || c.BodyTimeout < 0 || c.MaxBodyBytes < 0 {
		errs = append(errs, errors.New("timeouts and bounds must not be negative"))
	}
	for _, protocol := range c.Upgrades {
		if protocol == "" || strings.ContainsAny(protocol, " ,\t\r\n") {
			errs = append(errs, fmt.Errorf("upgrade %q: must be the name of a protocol, such as websocket", protocol))
		}
	}
	switch c.UnderscoresInHeaders {
	case "", dropUnderscores, passUnderscores, refuseUnderscores:
	default:
		errs = append(errs, fmt.Errorf("underscores in headers %q: must be %s, %s or %s",
			c.UnderscoresInHeaders, dropUnderscores, passUnderscores, refuseUnderscores))
	}
	return errors.Join(errs...)
}

// upgrades reports whether connections may be upgraded to that protocol.
func (c *Config) upgrades(protocol string) bool {
	for _, known := range c.Upgrades {
		// To fold also makes one letter of a Kelvin sign and k.
		if len(known) == len(protocol) && strings.EqualFold(known, protocol) {
			return true
		}
	}
	return false
}
