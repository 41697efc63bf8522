// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/adaptive"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/cmd/internal/metrics"
	"github.com/metehq/mete/cmd/internal/smallfile"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/proxy"
)

// An adaptation lowers all limits while the upstreams are slow or fail. If the settings do not enable it, all its
// functions except factor are nil.
type adaptation struct {
	scale   func(bucket.Tokens) bucket.Tokens
	observe func(time.Duration, error)
	factor  func() float64
}

func newAdaptation(a config.Adaptive) (adaptation, error) {
	if a.Law == "" {
		return adaptation{factor: func() float64 { return 1 }}, nil
	}
	c := adaptive.Config{Target: a.Target, Floor: a.Floor, Interval: a.Interval}
	if a.Law == adaptive.LawGradient.String() {
		c.Law, c.Tolerance = adaptive.LawGradient, a.Tolerance
	}
	control, err := adaptive.New(c)
	if err != nil {
		return adaptation{}, err
	}
	return adaptation{control.Scale, control.Observe, control.Factor}, nil
}

// A claimReader looks up claims of bearer tokens. It is nil if tokens are not verified.
type claimReader = func(*http.Request, policy.Attribute) (string, bool)

func (a *assembly) openGateway(limiter *mete.Limiter, b *buckets, claims claimReader, adapt adaptation) (*proxy.Proxy, error) {
	c := a.config
	limited, err := httplimit.New(limiter, httplimit.Config{
		TrustedProxies:   c.TrustedProxies,
		TrustedHops:      c.TrustedHops,
		ForwardedHeader:  c.ForwardedHeader,
		Attribute:        claims,
		UnverifiedClaims: c.TrustJWT,
		Fields:           c.RateLimitFields,
		CORSOrigins:      c.CORSOrigins,
		DisableJitter:    !c.Jitter,
		JitterKey:        b.keyFor("jitter"),
		MaxDelayed:       c.MaxDelayed,
		Ratios:           a.ratios,
		Tiktoken:         newTiktoken(),
		OnModelCall:      a.live.AI.OnModelCall,
	})
	if err != nil {
		return nil, err
	}
	upstreams, routes := c.UpstreamsAndRoutes()
	for i := range c.Upstreams {
		if upstreams[i].TLS, err = upstreamTLS(c.Upstreams[i]); err != nil {
			return nil, err
		}
	}
	failed := limitErrors(a.log, "upstream failed")
	p, err := proxy.NewRouted(upstreams, routes, limited, proxy.Config{
		DialTimeout:    c.Timeouts.UpstreamConnect,
		HeaderTimeout:  c.Timeouts.UpstreamHeader,
		BodyTimeout:    c.Timeouts.UpstreamBody,
		ClientTimeout:  orNone(c.Timeouts.ClientBody),
		UpgradeTimeout: orNone(c.Timeouts.Upgraded),
		MaxBodyBytes:   int64(c.MaxBodyBytes),
		RewriteHost:    c.RewriteHost,
		Upgrades:       append([]string{}, c.Upgrades...), // must not be nil, which selects the default
		Observe:        adapt.observe,
		OnError:        func(_ *http.Request, err error) { failed(err) },
		Logger:         a.log,

		UnderscoresInHeaders: c.UnderscoresInHeaders,
	})
	if err != nil {
		return nil, err
	}
	a.add(component{Name: "upstreams", Stop: func(context.Context) error { return p.Close() }})
	a.add(background("health checks of upstreams", p.Watch))
	a.metrics.Add(metrics.Upstreams(func() metrics.Gateway {
		g := metrics.Gateway{Upstreams: p.Stats(), Factor: adapt.factor()}
		g.Delayed, g.Refused = limited.Delayed()
		return g
	}))
	return p, nil
}

// newDecisionGateway configures /v1/decision for external gateways.
func (a *assembly) newDecisionGateway(b *buckets, claims claimReader) httpapi.Gateway {
	c := a.config
	if c.DecisionProfile == "" {
		return httpapi.Gateway{}
	}
	misasked := limitErrors(a.log, "incomplete request to /v1/decision, check the gateway configuration")
	return httpapi.Gateway{
		Profile:          httpapi.Profile(c.DecisionProfile),
		TrustedProxies:   c.TrustedProxies,
		TrustedHops:      c.TrustedHops,
		ForwardedHeader:  c.ForwardedHeader,
		Attribute:        claims,
		UnverifiedClaims: c.TrustJWT,
		Fields:           c.RateLimitFields,
		DisableJitter:    !c.Jitter,
		JitterKey:        b.keyFor("jitter"),
		MaxDelayed:       c.MaxDelayed,
		OnMisuse:         func(detail string) { misasked(errors.New(detail)) },
	}
}

func (a *assembly) drainUpgrades(p *proxy.Proxy) func(context.Context) {
	return func(ctx context.Context) {
		if n := p.Drain(ctx); n > 0 {
			a.log.Warn("upgraded connections closed at shutdown", "connections", n, "drain", a.timeouts.Drain)
		}
	}
}

// orNone converts a timeout setting for the proxy, which treats 0 as its default.
func orNone(setting time.Duration) time.Duration {
	if setting == 0 {
		return -1
	}
	return setting
}

// upstreamTLS returns the TLS settings for an upstream, or nil for the system roots.
func upstreamTLS(u config.Upstream) (*tls.Config, error) {
	if u.CA == "" {
		return nil, nil
	}
	pool, err := smallfile.Authorities(u.CA)
	if err != nil {
		return nil, fmt.Errorf("upstream %s: ca: %w", u.Name, err)
	}
	return &tls.Config{RootCAs: pool}, nil
}

// limitBodyDrain sets deadlines for the work that net/http does after the response. To reuse the
// connection, net/http reads up to 256 KiB of an unread request body. A denied client could hold a connection by
// sending slowly.
// It also flushes the response, so a client that never reads could hold a connection or many HTTP/2 streams.
func limitBodyDrain(next http.Handler, t config.Timeouts) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		if t.ClientBody > 0 && r.ProtoMajor == 1 {
			_ = control.SetWriteDeadline(time.Time{}) // clear the deadline of the previous request
		}
		next.ServeHTTP(w, r)
		now := time.Now()
		// An error means that the connection was hijacked and has ended.
		if r.Body != http.NoBody {
			_ = control.SetReadDeadline(now.Add(t.ReadHeader))
		}
		if t.ClientBody > 0 {
			_ = control.SetWriteDeadline(now.Add(t.ClientBody))
		}
	})
}
