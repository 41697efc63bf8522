// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"net/http"

	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/httplimit"
)

// gateway returns the reverse proxy with the policy in front of it.
func (s *Server) gateway() (http.Handler, error) {
	c := s.config
	limited, err := httplimit.New(s.limiter, httplimit.Config{
		TrustedProxies:   c.TrustedProxies,
		TrustedHops:      c.TrustedHops,
		ForwardedHeader:  c.ForwardedHeader,
		Attribute:        s.claim(),
		UnverifiedClaims: c.TrustJWT,
		Fields:           c.RateLimitFields,
		CORSOrigins:      c.CORSOrigins,
		DisableJitter:    !c.Jitter,
		JitterKey:        s.store.keyFor("jitter"),
		MaxDelayed:       c.MaxDelayed,
	})
	if err != nil {
		return nil, err
	}
	if err := s.openProxy(limited); err != nil {
		return nil, err
	}
	return leftover(withHealth(s.api, s.gate.proxy), c.Timeouts), nil
}

// decisions configures /v1/decision.
func (s *Server) decisions() httpapi.Gateway {
	c := s.config
	if c.DecisionProfile == "" {
		return httpapi.Gateway{}
	}
	misasked := s.complain("/v1/decision was asked in a way that nothing can be decided by; is the gateway set up for it?")
	return httpapi.Gateway{
		Profile:          httpapi.Profile(c.DecisionProfile),
		TrustedProxies:   c.TrustedProxies,
		TrustedHops:      c.TrustedHops,
		ForwardedHeader:  c.ForwardedHeader,
		Attribute:        s.claim(),
		UnverifiedClaims: c.TrustJWT,
		Fields:           c.RateLimitFields,
		DisableJitter:    !c.Jitter,
		JitterKey:        s.store.keyFor("jitter"),
		MaxDelayed:       c.MaxDelayed,
		Misasked:         func(detail string) { misasked(errors.New(detail)) },
	}
}
