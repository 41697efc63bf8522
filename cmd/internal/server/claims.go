// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"net/http"
	"strings"

	"github.com/metehq/mete/jwtclaims"
	"github.com/metehq/mete/policy"
)

// openClaims reads the key set, where one is named.
func (s *Server) openClaims(ctx context.Context) (err error) {
	j := s.config.JWT
	if j.Keys == "" {
		return nil
	}
	s.claims, err = jwtclaims.New(ctx, jwtclaims.Config{
		KeySet: j.Keys, Algorithms: j.Algorithms, Issuer: j.Issuer, Audience: j.Audience, Leeway: j.Leeway, Logger: s.log,
	})
	return err
}

// claim returns what looks up claims, nil where nothing does.
func (s *Server) claim() func(*http.Request, policy.Attribute) (string, bool) {
	if s.claims == nil {
		return nil
	}
	return s.claims.Attribute
}

// warnClaims says what claims are worth.
func (s *Server) warnClaims(m *policy.Matcher) {
	c := s.config
	switch {
	case c.TrustJWT:
		s.log.Warn("claims in bearer tokens are NOT VERIFIED (trust_jwt): anybody can claim anything, " +
			"unless something in front of this server checks every token")
	case s.claims != nil:
		s.log.Info("claims in bearer tokens are verified", "algorithms", strings.Join(c.JWT.Algorithms, ","),
			"issuer", anyone(c.JWT.Issuer), "audience", anyone(strings.Join(c.JWT.Audience, ",")))
		if !c.InFront() && c.DecisionProfile == "" {
			s.log.Warn("no bearer token is ever seen here: jwt.keys is for upstream and decision_profile; who asks the API names the claims")
		}
		if strings.HasPrefix(c.JWT.Keys, "http://") {
			s.log.Warn("the key set comes by plain http: who can come between writes tokens that are good here; use https")
		}
	case m.Uses(policy.SourceJWT):
		s.log.Warn("the policy reads claims (jwt:), and no request through the gateway has any: " +
			"--jwks FILE or URL verifies tokens; --trust-jwt believes them as they are; who asks the API names them")
	}
}

// anyone is what an empty setting means.
func anyone(s string) string {
	if s == "" {
		return "any"
	}
	return s
}
