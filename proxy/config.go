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

// Config holds the settings of a [Proxy]. In the zero Config every timeout has its default and bodies are
// unlimited. There is no timeout for a whole request, because a stream may last for days; the client and its
// context end it.
type Config struct {
	// DialTimeout bounds the time to connect to a server, and separately the time of the TLS handshake. Zero
	// means DefaultDialTimeout.
	DialTimeout time.Duration

	// HeaderTimeout bounds the time from the end of the request to the header of the response. Zero means
	// DefaultHeaderTimeout.
	HeaderTimeout time.Duration

	// BodyTimeout bounds how long a response body may stall because the server sends nothing. Zero means no
	// bound: streams may be silent.
	BodyTimeout time.Duration

	// ClientTimeout bounds how long a client may stall: while it sends its body before the response has begun, or
	// while it receives the response. Zero means DefaultClientTimeout; a negative value means no bound.
	ClientTimeout time.Duration

	// UpgradeTimeout bounds how long an upgraded connection, such as a WebSocket, may be idle in both directions.
	// The proxy then closes both sides without an error. Data that waits for a slow reader does not count as
	// traffic. Zero means DefaultUpgradeTimeout; a negative value means no bound.
	UpgradeTimeout time.Duration

	// MaxBodyBytes bounds the size of a request body. Zero means no bound.
	MaxBodyBytes int64

	// RewriteHost sends the server's name in Host (true), or the client's Host (false). If nil, https servers with a name get
	// their own, and other servers the client's: a public server knows only its own name. X-Forwarded-Host is the client's.
	RewriteHost *bool

	// Upgrades lists the protocols that a connection may be upgraded to, in any case. Nil means only "websocket";
	// an empty list allows none. The proxy forwards other upgrade requests without the upgrade. A client with an
	// upgrade to a protocol that carries requests, such as h2c, would bypass every limit.
	Upgrades []string

	// UnderscoresInHeaders sets the treatment of header fields with "_" in their names, or any character except
	// letters, digits and "-". Programs behind CGI, WSGI, Rack or PHP read X_Api_Key as X-Api-Key, but rules do
	// not. "drop" or empty removes these fields. "pass" forwards them, except look-alikes of fields that the
	// proxy writes or removes. A look-alike of a field that an enforced rule reads gets a 400. "refuse" rejects
	// the request with 400.
	UnderscoresInHeaders string

	// Dial connects to a server. If nil, the proxy uses a [net.Dialer]. It must be safe for concurrent use.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// Observe, if not nil, is called once for each forwarded request. The latency is the time from the end of the
	// request body to the response header. err is a transport error, or not nil for the statuses 429 and 5xx
	// except 501. It is not called for requests that clients cancel, nor for responses that begin before the body
	// has ended. It must be safe for concurrent use. The Observe method of an adaptive.Controller fits.
	Observe func(latency time.Duration, err error)

	// OnError, if not nil, is called for each 502 or 504 response, and for each response that breaks off, with
	// the outgoing request. It must be safe for concurrent use. A client that disconnects is not an error.
	OnError func(*http.Request, error)

	// Logger logs when a server goes down or comes back up. If nil, the proxy logs nothing.
	Logger *slog.Logger
}

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

func (c Config) validate() error {
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

func (c *Config) upgrades(protocol string) bool {
	for _, known := range c.Upgrades {
		// EqualFold alone would also match the Kelvin sign with k; the length check rules it out.
		if len(known) == len(protocol) && strings.EqualFold(known, protocol) {
			return true
		}
	}
	return false
}
