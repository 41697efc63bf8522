// SPDX-License-Identifier: Apache-2.0

package config

import (
	"net/url"
	"time"

	"github.com/metehq/mete/proxy"
)

// An Upstream is one or several servers that do the same: see [proxy.Upstream]. What
// it leaves out, or says to be 0, has its default.
type Upstream struct {
	// Name is what routes call it.
	Name string `yaml:"name"`

	// URLs are those of the servers: http, https or h2c.
	URLs []*url.URL `yaml:"urls" secret:"password"`

	// CA are the authorities of the certificates of https servers, in PEM. Empty:
	// those that the system knows. In a configuration file, a relative path is
	// relative to that file.
	CA string `yaml:"ca"`

	// Health says how the servers are watched. They are not, where it has no path.
	Health Health `yaml:"health"`

	// Timeouts take the place of those of all upstreams.
	Timeouts UpstreamTimeouts `yaml:"timeouts"`
}

// Health says how servers are watched: see [proxy.Health].
type Health struct {
	Path     string        `yaml:"path"`
	Interval time.Duration `yaml:"interval"`
	Timeout  time.Duration `yaml:"timeout"`
	Down     int           `yaml:"down"`
	Up       int           `yaml:"up"`
}

// UpstreamTimeouts are those of one upstream. 0: as timeouts.upstream_connect,
// upstream_header and upstream_body say.
type UpstreamTimeouts struct {
	Connect time.Duration `yaml:"connect"`
	Header  time.Duration `yaml:"header"`
	Body    time.Duration `yaml:"body"`
}

// A Route says which requests go to an upstream: see [proxy.Route].
type Route struct {
	// Hosts are the names asked for, *.example.com for all that end so. None: any.
	Hosts []string `yaml:"hosts"`

	// Path is what is asked for, or what that lies below. Empty: any.
	Path string `yaml:"path"`

	// Upstream is where they go, by its name.
	Upstream string `yaml:"upstream"`

	// MaxBodyBytes takes the place of the setting of that name. 0: as that says.
	MaxBodyBytes int `yaml:"max_body_bytes"`
}

// Adaptive says how limits follow what the upstreams can do: see package adaptive.
type Adaptive struct {
	// Law is aimd or gradient. Empty: limits stay what they are.
	Law string `yaml:"law"`

	// Target is the latency above which aimd counts a request as failed. 0: only
	// errors are counted.
	Target time.Duration `yaml:"target"`

	// Tolerance is how many times its usual latency gradient tolerates, 1 to 100.
	Tolerance float64 `yaml:"tolerance"`

	// Floor is the least part of a limit that holds, above 0 and at most 1.
	Floor float64 `yaml:"floor"`

	// Interval is how long the upstreams are watched before the part changes, from a
	// millisecond to an hour.
	Interval time.Duration `yaml:"interval"`
}

// InFront reports whether the main address is a gateway: there is an upstream.
func (c *Config) InFront() bool { return c.Upstream != nil || len(c.Upstreams) > 0 }

// proxyUpstream returns u for package proxy, without its CA.
func (u *Upstream) proxyUpstream() proxy.Upstream {
	return proxy.Upstream{
		Name: u.Name, Servers: u.URLs,
		DialTimeout: u.Timeouts.Connect, HeaderTimeout: u.Timeouts.Header, BodyTimeout: u.Timeouts.Body,
		Health: proxy.Health(u.Health),
	}
}

// Routing returns the upstreams, without their CAs, and the routes, for package proxy.
// Upstream, the short form, is one without a name to which everything goes, and so is an
// upstream that is alone and has no route.
func (c *Config) Routing() (upstreams []proxy.Upstream, routes []proxy.Route) {
	all, to := c.Upstreams, c.Routes
	if c.Upstream != nil {
		all = []Upstream{{Name: "upstream", URLs: []*url.URL{c.Upstream}}}
	}
	if len(all) == 1 && len(to) == 0 {
		to = []Route{{Upstream: all[0].Name}}
	}
	for i := range all {
		upstreams = append(upstreams, all[i].proxyUpstream())
	}
	for _, r := range to {
		routes = append(routes, proxy.Route{Hosts: r.Hosts, Path: r.Path, Upstream: r.Upstream, MaxBodyBytes: int64(r.MaxBodyBytes)})
	}
	return upstreams, routes
}
