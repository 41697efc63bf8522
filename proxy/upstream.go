// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// MaxServers is the maximum number of servers of an [Upstream].
const MaxServers = 64

// An Upstream is a set of one or more equivalent servers.
//
// The proxy draws two available servers at random and picks the one with fewer requests in flight. A slow server
// has more in flight and gets fewer requests, without any weights. Several proxies do not all pick the same
// server.
//
// If a connection to a server fails, the proxy excludes the server for a second, and for up to half a minute
// after further failures. Then one request probes it. The failed request goes to another server if its body is
// unread, because nothing was sent. No other request is retried, except by net/http. It resends a request without
// a body, such as a GET, to the same server if an old connection turns out to be closed. A single server is
// excluded only by its health checks.
type Upstream struct {
	// Name identifies the upstream in a [Route]. It is required.
	Name string

	// Servers are 1 to [MaxServers] URLs with the scheme http, https, or h2c (HTTP/2 without TLS). If a URL has a
	// path, it precedes the request's path. https uses HTTP/2 if the server supports it.
	Servers []*url.URL

	// Health configures health checks. The zero Health disables them.
	Health Health

	// DialTimeout, HeaderTimeout and BodyTimeout default to the [Config] if zero.
	DialTimeout, HeaderTimeout, BodyTimeout time.Duration

	// TLS is the configuration for https. If nil, the default is used. Do not change it afterwards.
	TLS *tls.Config
}

// Health configures the health checks of an [Upstream], which run while [Proxy.Watch] runs. Intervals vary by up
// to 10%. A check succeeds if the server responds in time with a status from 200 to 399; redirects are not
// followed.
type Health struct {
	// Path is requested with GET, below the path of the server's URL. If empty, there are no health checks.
	Path string

	// Interval is the time between two checks of a server. Zero means 5 seconds; the minimum is 10 milliseconds.
	Interval time.Duration

	// Timeout bounds the time for a response. Zero means 2 seconds.
	Timeout time.Duration

	// Down is the number of consecutive failures after which a server is down. Up is the number of consecutive
	// successes after which it is up again. Zero means 2. Servers start as up.
	Down, Up int
}

const (
	defaultHealthInterval = 5 * time.Second
	defaultHealthTimeout  = 2 * time.Second
	defaultHealthChecks   = 2

	minHealthInterval = 10 * time.Millisecond
)

func (h Health) withDefaults() Health {
	if h.Interval == 0 {
		h.Interval = defaultHealthInterval
	}
	if h.Timeout == 0 {
		h.Timeout = defaultHealthTimeout
	}
	if h.Down == 0 {
		h.Down = defaultHealthChecks
	}
	if h.Up == 0 {
		h.Up = defaultHealthChecks
	}
	return h
}

func (h Health) check() error {
	if h.Path == "" {
		if h != (Health{}) {
			return errors.New("health: path is required to enable health checks")
		}
		return nil
	}
	h = h.withDefaults()
	_, err := url.Parse(h.Path)
	switch {
	case err != nil || h.Path[0] != '/' || strings.ContainsAny(h.Path, "#"):
		return fmt.Errorf("health: path %q: must be a path such as /healthz", h.Path)
	case h.Interval < minHealthInterval || h.Timeout < 0 || h.Down < 0 || h.Up < 0:
		return fmt.Errorf("health: interval %v, timeout %v, down %d, up %d: must not be negative, and the interval must be at least %v",
			h.Interval, h.Timeout, h.Down, h.Up, minHealthInterval)
	}
	return nil
}

// Check reports every error in u.
func (u *Upstream) Check() error {
	var errs []error
	if u.Name == "" {
		errs = append(errs, errors.New("name is required"))
	}
	if len(u.Servers) == 0 || len(u.Servers) > MaxServers {
		errs = append(errs, fmt.Errorf("%d servers: must be between 1 and %d", len(u.Servers), MaxServers))
	}
	seen := map[string]bool{}
	for _, s := range u.Servers {
		if err := checkServer(s); err != nil {
			errs = append(errs, err)
			continue
		}
		if seen[s.Host] {
			errs = append(errs, fmt.Errorf("duplicate server %s", s.Host))
		}
		seen[s.Host] = true
	}
	if u.DialTimeout < 0 || u.HeaderTimeout < 0 || u.BodyTimeout < 0 {
		errs = append(errs, errors.New("timeouts must not be negative"))
	}
	errs = append(errs, u.Health.check())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("upstream %q: %w", u.Name, err)
	}
	return nil
}

func checkServer(u *url.URL) error {
	switch {
	case u == nil:
		return errors.New("upstream is required")
	case u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "h2c" || u.Hostname() == "" || u.Opaque != "":
		return fmt.Errorf("upstream %q: must be a URL such as http://127.0.0.1:3000", u.Redacted())
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("upstream %q: must have no user, query or fragment", u.Redacted())
	}
	return nil
}
