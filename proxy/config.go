// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// Defaults of a [Config].
const (
	DefaultDialTimeout   = 5 * time.Second
	DefaultHeaderTimeout = 30 * time.Second
)

const (
	// idleTimeout is how long an unused connection to the upstream is kept.
	idleTimeout = 90 * time.Second

	// maxIdle is how many unused connections are kept. The two that are
	// [http.Transport]'s default would have most requests of a burst connect anew.
	maxIdle = 256
)

// Config are a [Proxy]'s settings. In the zero Config every timeout has its
// default and bodies are not bounded. There is no timeout for a request as a
// whole, which may stream for days: the client and its context end it.
type Config struct {
	// DialTimeout bounds how long it may take to connect to the upstream, and
	// then again how long the TLS handshake may. If zero, DefaultDialTimeout.
	DialTimeout time.Duration

	// HeaderTimeout bounds how long the upstream may take, from the end of the
	// request to the header of the answer. If zero, DefaultHeaderTimeout.
	HeaderTimeout time.Duration

	// MaxBodyBytes bounds the body of a request. If zero, there is no bound.
	MaxBodyBytes int64

	// RewriteHost sends the upstream its own name in Host, in place of the one
	// the client asked for.
	RewriteHost bool

	// OnError, if set, is called with what is answered with 502 or 504, and with
	// the request as it was made to the upstream. It must be safe for concurrent
	// use. A client that has gone is no error.
	OnError func(*http.Request, error)
}

// withDefaults returns c with its zero values filled in.
func (c Config) withDefaults() Config {
	if c.DialTimeout == 0 {
		c.DialTimeout = DefaultDialTimeout
	}
	if c.HeaderTimeout == 0 {
		c.HeaderTimeout = DefaultHeaderTimeout
	}
	if c.OnError == nil {
		c.OnError = func(*http.Request, error) {}
	}
	return c
}

func (c Config) check() error {
	if c.DialTimeout < 0 || c.HeaderTimeout < 0 || c.MaxBodyBytes < 0 {
		return errors.New("timeouts and bounds must not be negative")
	}
	return nil
}

// checkUpstream reports whether requests can be sent to u.
func checkUpstream(u *url.URL) error {
	switch {
	case u == nil:
		return errors.New("upstream is required")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Opaque != "":
		return fmt.Errorf("upstream %q: must be a URL such as http://127.0.0.1:3000", u.Redacted())
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("upstream %q: must have no user, query or fragment", u.Redacted())
	}
	return nil
}
