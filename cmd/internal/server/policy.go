// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"strings"
	"time"

	"github.com/metehq/mete/cmd/internal/metrics"
	"github.com/metehq/mete/jwtclaims"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policy/lint"
)

func (a *assembly) lintPolicy(m *policy.Matcher) {
	for _, w := range lint.Check(m, time.Now()) {
		if lint.KindOf(w).Note {
			a.log.Info("policy note", "code", w.Code, "note", w.String())
			continue
		}
		a.log.Warn("policy warning", "code", w.Code, "warning", w.String())
	}
}

// openClaims loads the key set for bearer tokens if the settings name one.
func (a *assembly) openClaims(ctx context.Context) (claimReader, error) {
	j := a.config.JWT
	if j.Keys == "" {
		return nil, nil
	}
	v, err := jwtclaims.New(ctx, jwtclaims.Config{
		KeySet: j.Keys, Algorithms: j.Algorithms, Issuer: j.Issuer, Audience: j.Audience, Leeway: j.Leeway, Logger: a.log,
	})
	if err != nil {
		return nil, err
	}
	a.add(closing("key set", v.Close))
	a.metrics.Add(metrics.Claims(v.Stats))
	return v.Attribute, nil
}

// warnClaims logs whether claims in the policy can be trusted.
func (a *assembly) warnClaims(m *policy.Matcher) {
	c := a.config
	switch {
	case c.TrustJWT:
		a.log.Warn("bearer tokens NOT VERIFIED (trust_jwt): a client can claim anything, unless a proxy in front of this server verifies each token")
	case c.JWT.Keys != "":
		a.log.Info("bearer tokens verified", "algorithms", strings.Join(c.JWT.Algorithms, ","),
			"issuer", orAny(c.JWT.Issuer), "audience", orAny(strings.Join(c.JWT.Audience, ",")))
		if !c.InFront() && c.DecisionProfile == "" {
			a.log.Warn("jwt.keys has no effect: it needs upstream or decision_profile; clients of the API name the claims")
		}
		if strings.HasPrefix(c.JWT.Keys, "http://") {
			a.log.Warn("key set read over plain http: an attacker in between can forge tokens; use https")
		}
	case m.Uses(policy.SourceJWT):
		a.log.Warn("policy reads claims (jwt:), but requests through the gateway have none: " +
			"--jwks FILE or URL verifies tokens; --trust-jwt trusts them unverified; clients of the API name the claims")
	}
}

func orAny(s string) string {
	if s == "" {
		return "any"
	}
	return s
}

// addExpiry logs once when the active policy passes its expires_at. The policy stays active until an operator
// replaces it.
func (a *assembly) addExpiry() {
	stop := func() bool { return false }
	a.add(closing("expiry of the policy", func() { stop() }))
	a.onPolicy = append(a.onPolicy, func(m *policy.Matcher) {
		stop()
		at := m.Expires()
		if at.IsZero() {
			return
		}
		stop = time.AfterFunc(time.Until(at), func() {
			if m := a.limiter.Policy(); m.Expires().Equal(at) {
				a.log.Error("POLICY EXPIRED, still enforced", "expires_at", at, "version", m.Version())
			}
		}).Stop
	})
}
