// SPDX-License-Identifier: Apache-2.0

package proxy

// UpstreamStats holds the state of an [Upstream].
type UpstreamStats struct {
	Name        string
	Unavailable uint64 // requests that got a 503 because no server was up
	Servers     []ServerStats
}

// ServerStats holds the state of a server. Counters start when the proxy is created.
type ServerStats struct {
	Server   string    // URL
	Up       bool      // whether the server gets requests
	InFlight int64     // requests without a complete response
	Answers  [6]uint64 // responses by status class: Answers[2] counts 2xx
	Errors   uint64    // requests without a response, including those retried on another server, but not those canceled by clients
	Changes  uint64    // transitions between up and down
}

// Stats returns the state of every upstream in the order of the configuration.
func (p *Proxy) Stats() []UpstreamStats {
	all := make([]UpstreamStats, 0, len(p.upstreams))
	for _, u := range p.upstreams {
		stats := UpstreamStats{Name: u.name, Unavailable: u.unavailable.Load()}
		for _, s := range u.servers {
			stats.Servers = append(stats.Servers, s.stats())
		}
		all = append(all, stats)
	}
	return all
}

func (s *server) stats() ServerStats {
	stats := ServerStats{
		Server: s.url.String(), Up: !s.unhealthy.Load() && s.excludedUntil.Load() == 0,
		InFlight: s.inFlight.Load(), Errors: s.errors.Load(), Changes: s.changes.Load(),
	}
	for class := range s.responses {
		stats.Answers[class] = s.responses[class].Load()
	}
	return stats
}
