// SPDX-License-Identifier: Apache-2.0

package server

import "github.com/metehq/mete/policy"

// apply puts a policy in force.
func (s *Server) apply(m *policy.Matcher) error {
	if old := s.limiter.Policy().Version(); m.Version() < old {
		s.log.Warn("the new policy has a lower bundle_version than the old one", "old", old, "new", m.Version())
	}
	if err := s.limiter.SetPolicy(m); err != nil {
		return err
	}
	s.warn(m)
	return nil
}

// warn says what is right in a policy and yet worth a look, and loudly what
// claims are worth.
func (s *Server) warn(m *policy.Matcher) {
	for _, w := range m.Warnings() {
		s.log.Warn("policy: " + w.String())
	}
	switch {
	case s.config.TrustJWT:
		s.log.Warn("claims in bearer tokens are NOT VERIFIED (trust_jwt): anybody can claim anything, " +
			"unless something in front of this server checks every token")
	case m.Uses(policy.JWT):
		s.log.Warn("the policy reads claims (jwt:), and no request through the gateway has any: tokens are not verified here yet; " +
			"--trust-jwt believes them as they are; who asks the API names them")
	}
}
