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
	a.add(newCloser("key set", v.Close))
	a.metrics.Add(metrics.Claims(v.Stats))
	return v.Attribute, nil
}

// warnClaims logs whether claims in the policy can be trusted.
func (a *assembly) warnClaims(m *policy.Matcher) {
	c := a.config
	switch {
	case c.TrustJWT:
		a.log.Warn("bearer tokens NOT VERIFIED", "setting", "trust_jwt", "effect", "clients can forge claims unless a proxy verifies each token")
	case c.JWT.Keys != "":
		a.log.Info("bearer tokens verified", "algorithms", strings.Join(c.JWT.Algorithms, ","),
			"issuer", orAny(c.JWT.Issuer), "audience", orAny(strings.Join(c.JWT.Audience, ",")))
		if !c.IsGateway() && c.DecisionProfile == "" {
			a.log.Warn("jwt.keys has no effect", "reason", "it requires upstream or decision_profile; API clients send the claims")
		}
		if strings.HasPrefix(c.JWT.Keys, "http://") {
			a.log.Warn("key set loaded over plain HTTP", "effect", "an attacker in between can forge tokens", "remedy", "use https")
		}
	case m.Uses(policy.SourceJWT):
		a.log.Warn("policy reads claims (jwt:), but gateway requests have none",
			"remedy", "set --jwks FILE or URL to verify tokens, or --trust-jwt to trust them; API clients send the claims")
	}
}

// warnResponses warns about limits that are charged by responses if no listener sees responses.
func (a *assembly) warnResponses(m *policy.Matcher) {
	if m.AwaitsResponse() && !a.config.IsGateway() {
		a.log.Warn("policy charges by the response (charge_on or response_header), but no listener sees responses",
			"effect", "every request keeps its charge", "remedy", "set --upstream, or refund through the API")
	}
}

// warnSlots warns about concurrency limits if listeners that see no responses decide requests.
func (a *assembly) warnSlots(m *policy.Matcher) {
	if m.HoldsSlots() && !a.config.IsGateway() {
		a.log.Warn("policy has concurrency limits, but no listener sees the end of requests",
			"effect", "a slot is held for its whole lease", "remedy", "set --upstream, or call /v1/slots/release at the end of each request")
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
	a.add(newCloser("expiry of the policy", func() { stop() }))
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
