// SPDX-License-Identifier: Apache-2.0

package proxy

// UpstreamStats say how an [Upstream] is.
type UpstreamStats struct {
	Name        string
	Unavailable uint64 // requests that were answered with 503: no server was up
	Servers     []ServerStats
}

// ServerStats say how a server of an upstream is. Counts are since the proxy was made.
type ServerStats struct {
	Server   string    // its URL
	Up       bool      // requests go to it
	InFlight int64     // requests that it has not yet answered in full
	Answers  [6]uint64 // by class: Answers[2] are those with a status of 2xx
	Errors   uint64    // requests without an answer, but for those that clients broke off; what went to another server then is among them
	Changes  uint64    // how often it was taken for down, or for up again
}

// Stats returns those of every upstream, in the order in which they were given. There
// are as many as there are servers, whatever clients do.
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
		Server: s.url.String(), Up: !s.sick.Load() && s.out.Load() == 0,
		InFlight: s.inFlight.Load(), Errors: s.errors.Load(), Changes: s.changes.Load(),
	}
	for class := range s.answers {
		stats.Answers[class] = s.answers[class].Load()
	}
	return stats
}
