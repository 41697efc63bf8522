// SPDX-License-Identifier: Apache-2.0

package server

import (
	"time"

	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policy/lint"
)

// apply puts a policy in force, and with it all overrides that fit it.
func (s *Server) apply(m *policy.Matcher) error {
	if err := s.overrides.Base(m); err != nil {
		return err
	}
	s.metrics.SetPolicy(m)
	s.skips.setPolicy(m)
	s.top.keep(m)
	s.warn(m)
	s.watchExpiry(m)
	return nil
}

// warn says what is right in a policy and yet worth a look, and loudly what
// claims are worth.
func (s *Server) warn(m *policy.Matcher) {
	for _, w := range lint.Check(m, time.Now()) {
		if lint.KindOf(w).Note {
			s.log.Info("policy: "+w.String(), "code", w.Code)
			continue
		}
		s.log.Warn("policy: "+w.String(), "code", w.Code)
	}
	s.warnClaims(m)
}
