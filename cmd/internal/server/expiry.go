// SPDX-License-Identifier: Apache-2.0

package server

import (
	"time"

	"github.com/metehq/mete/policy"
)

// watchExpiry says it once, loudly, when the policy in force passes its expires_at.
// It stays in force: what it is replaced with is for people to say. It is not safe
// for concurrent use.
func (s *Server) watchExpiry(m *policy.Matcher) {
	if s.expiry != nil {
		s.expiry.Stop()
	}
	at := m.Expires()
	if at.IsZero() {
		return
	}
	s.expiry = time.AfterFunc(time.Until(at), func() {
		if s.limiter.Policy().Expires().Equal(at) {
			s.log.Error("THE POLICY HAS EXPIRED and is still enforced: nobody has replaced it in time",
				"expires_at", at, "version", s.limiter.Policy().Version())
		}
	})
}
