// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"cmp"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Reloads are what became of changes of the policy.
type Reloads struct {
	Applied, Failed uint64
	Failing         bool      // the last one failed, so that there may be a policy that is not in force
	At              time.Time // when the policy in force was put in force
}

// A Listener is an address that the server answers at.
type Listener struct {
	Name        string // main or admin
	Connections int64  // open, those that a WebSocket has taken over included
	InFlight    int64  // requests that are being answered
	Refused     uint64 // requests that there was no room for
	Full        uint64 // times that there was no room for a connection

	CertificateExpires time.Time // zero: no TLS
}

// labeled sends one metric of several that differ in a label.
func (w writer) labeled(kind prometheus.ValueType, name, help, label, value string, v float64) {
	w.to <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, []string{label}, w.labels), kind, v, value)
}

// server writes what is known of the process and what it serves.
func (w writer) server(s *Sources) {
	build := prometheus.NewDesc("mete_build_info", "1, with the version of mete, its commit, and the version of Go.", []string{"version", "revision", "go"}, nil)
	w.to <- prometheus.MustNewConstMetric(build, prometheus.GaugeValue, 1,
		cmp.Or(s.Build.Version, "unknown"), cmp.Or(s.Build.Revision, "unknown"), runtime.Version())
	if s.Policy != nil {
		if m := s.Policy(); m != nil {
			w.policy(m.Version(), len(m.Rules()))
		}
	}
	if s.Reloads != nil {
		w.reloads(s.Reloads())
	}
	if s.Listeners != nil {
		for _, l := range s.Listeners() {
			w.listener(l)
		}
	}
	if s.Gateway != nil {
		w.gateway(s.Gateway())
	}
	w.logs(s)
	if s.Telemetry != nil {
		t := s.Telemetry()
		w.counter("mete_otlp_spans_total", "Spans of sampled requests that have ended.", float64(t.Spans))
		w.counter("mete_otlp_spans_exported_total", "Of these, spans that the collector has taken. The rest is waiting, has failed, or found the queue full.", float64(t.Exported))
		const help = "Exports that the collector did not take, by what they were of."
		w.labeled(prometheus.CounterValue, "mete_otlp_exports_failed_total", help, "signal", "traces", float64(t.TracesFailed))
		w.labeled(prometheus.CounterValue, "mete_otlp_exports_failed_total", help, "signal", "metrics", float64(t.MetricsFailed))
	}
}

func (w writer) reloads(r Reloads) {
	const help = "Changes of the policy, by what became of them."
	w.labeled(prometheus.CounterValue, "mete_policy_reloads_total", help, "result", "applied", float64(r.Applied))
	w.labeled(prometheus.CounterValue, "mete_policy_reloads_total", help, "result", "failed", float64(r.Failed))
	failing := 0.0
	if r.Failing {
		failing = 1
	}
	w.gauge("mete_policy_reload_failing", "1 while the last change of the policy could not be put in force, and the one before stays.", failing)
	w.gauge("mete_policy_applied_timestamp_seconds", "When the policy in force was put in force, as Unix time.", float64(r.At.UnixMilli())/1e3)
}

func (w writer) listener(l Listener) {
	of := writer{w.to, prometheus.Labels{"listener": l.Name}}
	of.gauge("mete_http_connections", "Open connections, those that a WebSocket has taken over included.", float64(l.Connections))
	of.gauge("mete_http_in_flight", "Requests that are being answered.", float64(l.InFlight))
	of.counter("mete_http_refused_total", "Requests that there was no room for.", float64(l.Refused))
	of.counter("mete_http_connections_full_total", "Times that max_connections were open: one that was idle was closed for a new one, or that waited.", float64(l.Full))
	if !l.CertificateExpires.IsZero() {
		of.gauge("mete_tls_certificate_expires_timestamp_seconds", "When the certificate that is served expires, as Unix time.", float64(l.CertificateExpires.Unix()))
	}
}

// logs writes what did not become of logs.
func (w writer) logs(s *Sources) {
	if s.Log != nil {
		l := s.Log()
		w.counter("mete_log_lines_total", "Lines of the log.", float64(l.Lines))
		w.counter("mete_log_lines_dropped_total", "Of these, lines that nobody took from the pipe in time.", float64(l.Dropped))
	}
	if s.Denials != nil {
		d := s.Denials()
		w.counter("mete_denial_log_denials_total", "Denials, shadow rules' included, that the denial log was told of.", float64(d.Denials))
		w.counter("mete_denial_log_lines_total", "Lines that they became.", float64(d.Lines))
		w.counter("mete_denial_log_unlogged_total", "Of the denials, those that are in no line: of keys for which there was no room.", float64(d.Unlogged))
		w.gauge("mete_denial_log_bursts", "Keys that were denied of late.", float64(d.Bursts))
	}
}
