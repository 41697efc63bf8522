// SPDX-License-Identifier: Apache-2.0

package config

import (
	"net/url"
	"time"

	"github.com/metehq/mete/proxy"
)

// An Upstream is a group of equivalent servers: see [proxy.Upstream]. 0 selects the default of each setting.
type Upstream struct {
	Name     string           `yaml:"name"` // for routes
	URLs     []*url.URL       `yaml:"urls" secret:"password"`
	CA       string           `yaml:"ca"` // a file; empty: the authorities of the system
	Health   Health           `yaml:"health"`
	Timeouts UpstreamTimeouts `yaml:"timeouts"`
}

// Health configures health checks: see [proxy.Health].
type Health struct {
	Path     string        `yaml:"path"`
	Interval time.Duration `yaml:"interval"`
	Timeout  time.Duration `yaml:"timeout"`
	Down     int           `yaml:"down"`
	Up       int           `yaml:"up"`
}

// UpstreamTimeouts override the timeouts for one upstream. 0 keeps the global timeout.
type UpstreamTimeouts struct {
	Connect time.Duration `yaml:"connect"`
	Header  time.Duration `yaml:"header"`
	Body    time.Duration `yaml:"body"`
}

// A Route selects requests for an upstream: see [proxy.Route].
type Route struct {
	Hosts        []string `yaml:"hosts"`
	Path         string   `yaml:"path"`
	Upstream     string   `yaml:"upstream"` // its name
	MaxBodyBytes int      `yaml:"max_body_bytes"`
}

// Adaptive holds the settings of package adaptive.
type Adaptive struct {
	Law       string        `yaml:"law"`    // aimd or gradient; empty: off
	Target    time.Duration `yaml:"target"` // for aimd; 0: only errors count
	Tolerance float64       `yaml:"tolerance"`
	Floor     float64       `yaml:"floor"`
	Interval  time.Duration `yaml:"interval"`
}

// IsGateway reports whether the server is a gateway, which has an upstream.
func (c *Config) IsGateway() bool { return c.Upstream != nil || len(c.Upstreams) > 0 }

func (u *Upstream) proxyUpstream() proxy.Upstream {
	return proxy.Upstream{
		Name: u.Name, Servers: u.URLs,
		DialTimeout: u.Timeouts.Connect, HeaderTimeout: u.Timeouts.Header, BodyTimeout: u.Timeouts.Body,
		Health: proxy.Health(u.Health),
	}
}

// UpstreamsAndRoutes returns the upstreams and routes for package proxy, without CAs. Upstream, the short form, becomes an
// unnamed upstream that receives all requests. A single upstream without routes receives all requests, too.
func (c *Config) UpstreamsAndRoutes() (upstreams []proxy.Upstream, routes []proxy.Route) {
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
