// SPDX-License-Identifier: Apache-2.0

package server

import (
	"time"

	"github.com/metehq/mete/cmd/internal/buildinfo"
	"github.com/metehq/mete/cmd/internal/bundle"
	"github.com/metehq/mete/cmd/internal/denials"
	"github.com/metehq/mete/cmd/internal/logpipe"
	"github.com/metehq/mete/cmd/internal/metrics"
	"github.com/metehq/mete/cmd/internal/telemetry"
)

// ownSources are what the server knows of itself. Some of it comes after the
// metrics, and is asked for when they are read.
func (s *Server) ownSources(from *metrics.Sources) {
	from.Build = buildinfo.Read()
	from.Policy = s.Policy
	if s.bundleStatus() != nil {
		from.Bundle = func() bundle.Status { return *s.bundleStatus() }
	}
	from.Reloads = s.reloads.stats(s.started)
	from.Listeners = s.listeners
	if s.inFront() {
		from.Gateway = func() metrics.Gateway { return metrics.Gateway(s.gate.stats()) }
	}
	from.Telemetry = func() telemetry.Stats { return s.telemetry.Stats() }
	from.Denials = func() denials.Stats {
		if s.denials == nil {
			return denials.Stats{}
		}
		return s.denials.Stats()
	}
	from.Log = func() logpipe.Stats {
		if s.logPipe == nil {
			return logpipe.Stats{}
		}
		return s.logPipe.Stats()
	}
}

// LogsTo tells the server what its log goes through, for the metrics. It is for
// before Run.
func (s *Server) LogsTo(pipe *logpipe.Writer) { s.logPipe = pipe }

// stats returns what became of changes of a policy that was first put in force then.
func (r *reloads) stats(started time.Time) func() metrics.Reloads {
	return func() metrics.Reloads {
		m := metrics.Reloads{Applied: r.good.Load(), Failed: r.bad.Load(), Failing: r.failing.Load(), At: started}
		if last := r.last.Load(); last != 0 {
			m.At = time.Unix(0, last)
		}
		return m
	}
}

// listeners are the two addresses.
func (s *Server) listeners() []metrics.Listener {
	all := make([]metrics.Listener, 0, 2)
	for _, l := range []struct {
		name string
		*endpoint
	}{{"main", &s.main}, {"admin", &s.admin}} {
		if l.listener == nil || l.crowd == nil {
			continue
		}
		m := metrics.Listener{
			Name: l.name, Connections: l.listener.open(),
			InFlight: l.crowd.now.Load(), Refused: l.crowd.refused.Load(), Full: l.listener.full.Load(),
		}
		if l.certs != nil {
			m.CertificateExpires = l.certs.expiry()
		}
		all = append(all, m)
	}
	return all
}
