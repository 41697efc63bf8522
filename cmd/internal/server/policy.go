// SPDX-License-Identifier: Apache-2.0

package server

import "github.com/metehq/mete/policy"

// apply puts a policy in force.
func (s *Server) apply(m *policy.Matcher) error {
	if err := s.limiter.SetPolicy(m); err != nil {
		return err
	}
	s.warn(m)
	s.watchExpiry(m)
	return nil
}

// warn says what is right in a policy and yet worth a look, and loudly what
// claims are worth.
func (s *Server) warn(m *policy.Matcher) {
	for _, w := range m.Warnings() {
		s.log.Warn("policy: " + w.String())
	}
	s.warnClaims(m)
}
