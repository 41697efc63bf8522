// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/metehq/mete/adaptive"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/cmd/internal/metrics"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/proxy"
)

// A gate is what is between clients and the upstreams. Its zero value is none.
type gate struct {
	proxy   *proxy.Proxy          // nil: no upstream
	limited *httplimit.Middleware // nil with it
	control *adaptive.Controller  // nil: limits do not adapt
}

// openAdaptive begins to scale limits, where the settings say so.
func (s *Server) openAdaptive() (err error) {
	a := s.config.Adaptive
	if a.Law == "" {
		return nil
	}
	c := adaptive.Config{Target: a.Target, Floor: a.Floor, Interval: a.Interval}
	if a.Law == adaptive.Gradient.String() {
		c.Law, c.Tolerance = adaptive.Gradient, a.Tolerance
	}
	s.gate.control, err = adaptive.New(c)
	return err
}

// scale is what the limiter scales costs by, nil where nothing does.
func (g *gate) scale() func(bucket.Tokens) bucket.Tokens {
	if g.control == nil {
		return nil
	}
	return g.control.Scale
}

// observe is what the proxy tells of requests, nil where nobody wants to know.
func (g *gate) observe() func(time.Duration, error) {
	if g.control == nil {
		return nil
	}
	return g.control.Observe
}

// run runs the health checks until ctx ends.
func (g *gate) run(ctx context.Context) {
	if g.proxy != nil {
		g.proxy.Watch(ctx)
	}
}

// drain waits for upgraded connections until ctx ends, and returns how many it then
// cut off.
func (g *gate) drain(ctx context.Context) int {
	if g.proxy == nil {
		return 0
	}
	return g.proxy.Drain(ctx)
}

// close closes the connections to upstreams.
func (g *gate) close() {
	if g.proxy != nil {
		g.proxy.Close()
	}
}

// stats say how the gateway is.
func (g *gate) stats() metrics.Gateway {
	s := metrics.Gateway{Factor: 1}
	if g.control != nil {
		s.Factor = g.control.Factor()
	}
	if g.proxy != nil {
		s.Upstreams = g.proxy.Stats()
		s.Delayed, s.Refused = g.limited.Delayed()
	}
	return s
}

// openProxy makes the reverse proxy behind limited.
func (s *Server) openProxy(limited *httplimit.Middleware) (err error) {
	c := s.config
	upstreams, routes := c.Routing()
	for i := range c.Upstreams {
		if upstreams[i].TLS, err = authorities(c.Upstreams[i]); err != nil {
			return err
		}
	}
	complain := s.complain("the upstream failed")
	s.gate.limited = limited
	s.gate.proxy, err = proxy.NewRouted(upstreams, routes, limited, proxy.Config{
		DialTimeout:    c.Timeouts.UpstreamConnect,
		HeaderTimeout:  c.Timeouts.UpstreamHeader,
		BodyTimeout:    c.Timeouts.UpstreamBody,
		ClientTimeout:  orNone(c.Timeouts.ClientBody),
		UpgradeTimeout: orNone(c.Timeouts.Upgraded),
		MaxBodyBytes:   int64(c.MaxBodyBytes),
		RewriteHost:    c.RewriteHost,
		Upgrades:       append([]string{}, c.Upgrades...), // never nil, which is the default one
		Observe:        s.gate.observe(),
		OnError:        func(_ *http.Request, err error) { complain(err) },
		Logger:         s.log,

		UnderscoresInHeaders: c.UnderscoresInHeaders,
	})
	return err
}

// orNone returns a timeout as the proxy has it, to which 0 is its default.
func orNone(setting time.Duration) time.Duration {
	if setting == 0 {
		return -1
	}
	return setting
}

// authorities returns what an upstream's certificates are checked with, nil for those
// that the system knows.
func authorities(u config.Upstream) (*tls.Config, error) {
	if u.CA == "" {
		return nil, nil
	}
	text, err := os.ReadFile(u.CA)
	if err != nil {
		return nil, fmt.Errorf("upstream %s: ca: %w", u.Name, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("upstream %s: ca: %s: there is no certificate in PEM", u.Name, u.CA)
	}
	return &tls.Config{RootCAs: pool}, nil
}

// mainProtocols are what clients of the main address may speak.
func mainProtocols(c config.Config) *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	p.SetHTTP2(c.TLS.On())
	p.SetUnencryptedHTTP2(c.H2C)
	return p
}
