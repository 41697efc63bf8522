// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

// Defaults of a [Config].
const (
	DefaultDialTimeout   = 5 * time.Second
	DefaultHeaderTimeout = 30 * time.Second
	DefaultIdleTimeout   = 90 * time.Second
	DefaultMaxIdle       = 256
)

// Config are a [Proxy]'s settings. In the zero Config every timeout has its
// default, bodies are not bounded, and no proxy is trusted. There is no timeout
// for a request as a whole, which may stream for days: the client and its
// context end it.
type Config struct {
	// DialTimeout bounds how long it may take to connect to the upstream, and
	// then again how long the TLS handshake may. If zero, DefaultDialTimeout.
	DialTimeout time.Duration

	// HeaderTimeout bounds how long the upstream may take, from the end of the
	// request to the header of the answer. If zero, DefaultHeaderTimeout.
	HeaderTimeout time.Duration

	// IdleTimeout is how long an unused connection to the upstream is kept. If
	// zero, DefaultIdleTimeout.
	IdleTimeout time.Duration

	// MaxIdle is how many unused connections are kept. If zero, DefaultMaxIdle.
	MaxIdle int

	// MaxBodyBytes bounds the body of a request. If zero, there is no bound.
	MaxBodyBytes int64

	// RewriteHost sends the upstream its own name in Host, in place of the one
	// the client asked for.
	RewriteHost bool

	// TrustedProxies and TrustedHops say whose X-Forwarded headers are passed
	// on. They should be those of the middleware: see [httplimit.Config].
	TrustedProxies []netip.Prefix
	TrustedHops    int

	// OnError, if set, is called with what is answered with 502 or 504, and with
	// the request as it was made to the upstream. It must be safe for concurrent
	// use. A client that has gone is no error.
	OnError func(*http.Request, error)
}

// withDefaults returns c with its zero values filled in.
func (c Config) withDefaults() Config {
	for _, d := range []struct {
		value    *time.Duration
		fallback time.Duration
	}{{&c.DialTimeout, DefaultDialTimeout}, {&c.HeaderTimeout, DefaultHeaderTimeout}, {&c.IdleTimeout, DefaultIdleTimeout}} {
		if *d.value == 0 {
			*d.value = d.fallback
		}
	}
	if c.MaxIdle == 0 {
		c.MaxIdle = DefaultMaxIdle
	}
	if c.OnError == nil {
		c.OnError = func(*http.Request, error) {}
	}
	return c
}

func (c Config) check() error {
	if c.DialTimeout < 0 || c.HeaderTimeout < 0 || c.IdleTimeout < 0 || c.MaxIdle < 0 || c.MaxBodyBytes < 0 {
		return errors.New("proxy: timeouts and bounds must not be negative")
	}
	return nil
}

// checkUpstream reports whether requests can be sent to u.
func checkUpstream(u *url.URL) error {
	switch {
	case u == nil:
		return errors.New("proxy: upstream is required")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Opaque != "":
		return fmt.Errorf("proxy: upstream %q: must be a URL such as http://127.0.0.1:3000", u.Redacted())
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("proxy: upstream %q: must have no user, query or fragment", u.Redacted())
	}
	return nil
}
