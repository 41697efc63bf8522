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

// MaxServers is how many servers an [Upstream] may have.
const MaxServers = 64

// An Upstream is one or several servers that do the same.
//
// A request goes to the one of two servers, drawn at random from those that are up,
// that has fewer requests in flight. That needs no knowledge of what servers can do:
// one that has become slow has more in flight and gets less, and no two proxies send
// everything to the same one.
//
// A server that cannot be connected to is left out for a second, and for longer each
// time, up to half a minute; then one request is tried. Such a request goes to
// another server, if none of its body has been read: nothing of it was sent. No
// other is sent twice. (What net/http itself does stays as it is: a request without a
// body that does nothing, such as a GET, is sent again on a new connection to the same
// server where an old one turns out to be closed.) A server that is alone is never left out, but by its health
// checks.
type Upstream struct {
	// Name is what a [Route] calls it. It is required.
	Name string

	// Servers are between 1 and [MaxServers] URLs: http, https, or h2c, which is HTTP/2
	// without TLS. One's path, if it has one, comes before that of the request. https
	// is HTTP/2 where the server speaks it.
	Servers []*url.URL

	// Health says how servers are watched. In the zero Health they are not.
	Health Health

	// DialTimeout, HeaderTimeout and BodyTimeout are those of the [Config] where zero.
	DialTimeout, HeaderTimeout, BodyTimeout time.Duration

	// TLS is the configuration for https. If nil, the default one. It must not be
	// changed afterwards.
	TLS *tls.Config
}

// Health says how the servers of an [Upstream] are watched while [Proxy.Watch] runs:
// each is asked for a path, in intervals that vary by a tenth. It is up where it
// answers in time with a status from 200 to 399, which are not followed.
type Health struct {
	// Path is what is asked for, with GET, below the path of the server's URL. If
	// empty, servers are not asked.
	Path string

	// Interval is the time between two checks of a server. If zero, 5 seconds; at least
	// 10 milliseconds.
	Interval time.Duration

	// Timeout is how long an answer may take. If zero, 2 seconds.
	Timeout time.Duration

	// Down is how many checks in a row must fail for a server to be taken for down, and
	// Up how many must succeed for it to be taken for up again. If zero, 2. Servers are
	// up when they are not known yet.
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
			return errors.New("health: path is required: without one nobody is asked")
		}
		return nil
	}
	h = h.withDefaults()
	_, err := url.Parse(h.Path)
	switch {
	case err != nil || h.Path[0] != '/' || strings.ContainsAny(h.Path, "#"):
		return fmt.Errorf("health: path %q: must be one such as /healthz", h.Path)
	case h.Interval < minHealthInterval || h.Timeout < 0 || h.Down < 0 || h.Up < 0:
		return fmt.Errorf("health: interval %v, timeout %v, down %d, up %d: none must be negative, nor the interval below %v",
			h.Interval, h.Timeout, h.Down, h.Up, minHealthInterval)
	}
	return nil
}

// Check reports every mistake in u.
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
			errs = append(errs, fmt.Errorf("server %s is there twice", s.Host))
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

// checkServer reports whether requests can be sent to u.
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
