// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/internal/metrics"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/redisstore"
	"github.com/metehq/mete/topkeys"
)

// sources are what /metrics shows.
func (s *Server) sources() metrics.Sources {
	from := metrics.Sources{
		Ready:   s.opened.Load, // a collector of telemetry may be told before
		Limiter: func() mete.Stats { return s.limiter.Stats() },
		Expires: func() time.Time { return s.limiter.Policy().Expires() },
	}
	from.Overrides = func() map[policy.Action]int { return s.overrides.Count() }
	if m := s.store.memory; m != nil {
		from.Memory = m.Stats
	}
	if r := s.store.remote; r != nil {
		from.Guard, from.Nodes = r.Store.Stats, r.node.Nodes
		switch node := r.node.(type) {
		case *redisstore.Node:
			from.Redis = node.Stats
		case *pgstore.Node:
			from.Postgres = node.Stats
		}
	}
	if s.inFront() {
		from.Gateway = s.gate.stats
	}
	if s.claims != nil {
		from.Claims = s.claims.Stats
	}
	if s.top != nil {
		from.Top = func() topkeys.Stats { return s.top.tracker.Stats() }
	}
	if s.trail != nil {
		from.Violations = s.trail.stats
	}
	s.ownSources(&from)
	return from
}

// withMetrics serves /metrics, and everything else by next.
func (s *Server) withMetrics(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
			s.metrics.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}
