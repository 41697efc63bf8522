// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"cmp"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/internal/buildinfo"
	"github.com/metehq/mete/cmd/internal/denials"
	"github.com/metehq/mete/cmd/internal/logpipe"
	"github.com/metehq/mete/cmd/internal/telemetry"
	"github.com/metehq/mete/cmd/internal/webhook"
	"github.com/metehq/mete/guard"
	"github.com/metehq/mete/jwtclaims"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/pgstore/violations"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/redisstore"
	"github.com/metehq/mete/topkeys"
)

// read returns a source that reads stats and writes them.
func read[S any](stats func() S, write func(writer, S)) Source {
	return func(w writer) { write(w, stats()) }
}

// Limiter is the source of the limiter's own counts.
func Limiter(stats func() mete.Stats) Source { return read(stats, writer.limiter) }

// Memory, Redis and Postgres are the sources of one kind of store each.
func Memory(stats func() memstore.Stats) Source  { return read(stats, writer.memory) }
func Redis(stats func() redisstore.Stats) Source { return read(stats, writer.redis) }
func Postgres(stats func() pgstore.Stats) Source { return read(stats, writer.postgres) }

// Guard is the source of the circuit breaker, and DeniedFromMemory of the limiter's memory of
// denials, which only a limiter with a shared store has.
func Guard(stats func() guard.Stats) Source           { return read(stats, writer.guard) }
func DeniedFromMemory(stats func() mete.Stats) Source { return read(stats, writer.deniedFromMemory) }
func Claims(stats func() jwtclaims.Stats) Source      { return read(stats, writer.claims) }
func Top(stats func() topkeys.Stats) Source           { return read(stats, writer.top) }
func Violations(stats func() violations.Stats) Source { return read(stats, writer.violations) }
func Denials(stats func() denials.Stats) Source       { return read(stats, writer.denials) }
func DenialWebhook(stats func() webhook.Stats) Source { return read(stats, writer.denialWebhook) }
func Log(stats func() logpipe.Stats) Source           { return read(stats, writer.log) }
func Telemetry(stats func() telemetry.Stats) Source   { return read(stats, writer.telemetry) }
func Upstreams(stats func() Gateway) Source           { return read(stats, writer.gateway) }
func AtListener(stats func() Listener) Source         { return read(stats, writer.listener) }
func PolicyReloads(stats func() Reloads) Source       { return read(stats, writer.reloads) }
func Overrides(n func() map[policy.Action]int) Source { return read(n, writer.overrides) }
func Build(build func() buildinfo.Info) Source        { return read(build, writer.build) }

// Nodes is the source of the number of servers that share the store.
func Nodes(n func() int) Source {
	return read(n, func(w writer, n int) {
		w.gauge("mete_nodes", "Servers that share the store, this one included, as last seen.", float64(n))
	})
}

// Policy is the source of the active policy.
func Policy(active func() *policy.Matcher) Source {
	return read(active, func(w writer, m *policy.Matcher) {
		w.policy(m.Version(), len(m.Rules()))
		w.expiry(m.Expires())
	})
}

func (w writer) build(b buildinfo.Info) {
	d := prometheus.NewDesc("mete_build_info", "1, with the version of mete, its commit, and the version of Go.", []string{"version", "revision", "go"}, nil)
	w.to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, 1,
		cmp.Or(b.Version, "unknown"), cmp.Or(b.Revision, "unknown"), runtime.Version())
}

func (w writer) telemetry(t telemetry.Stats) {
	w.counter("mete_otlp_spans_total", "Spans of sampled requests that have ended.", float64(t.Spans))
	w.counter("mete_otlp_spans_exported_total", "Of these, spans that the collector has taken. The rest is waiting, has failed, or found the queue full.", float64(t.Exported))
	const help = "Exports that the collector did not take, by what they were of."
	w.labeled(prometheus.CounterValue, "mete_otlp_exports_failed_total", help, "signal", "traces", float64(t.TracesFailed))
	w.labeled(prometheus.CounterValue, "mete_otlp_exports_failed_total", help, "signal", "metrics", float64(t.MetricsFailed))
}

func (w writer) log(l logpipe.Stats) {
	w.counter("mete_log_lines_total", "Lines of the log.", float64(l.Lines))
	w.counter("mete_log_lines_dropped_total", "Of these, lines that nobody took from the pipe in time.", float64(l.Dropped))
}

func (w writer) denialWebhook(s webhook.Stats) {
	for _, of := range []struct {
		result string
		n      uint64
	}{{"sent", s.Sent}, {"dropped", s.Dropped}, {"failed", s.Failed}} {
		by := writer{w.to, prometheus.Labels{"result": of.result}}
		by.counter("mete_denial_webhook_lines_total", "Lines for the denial webhook, by result: the queue dropped them, or the endpoint failed.", float64(of.n))
	}
	w.gauge("mete_denial_webhook_waiting", "Lines that wait for the denial webhook.", float64(s.Waiting))
}

func (w writer) denials(d denials.Stats) {
	w.counter("mete_denial_log_denials_total", "Denials, shadow rules' included, that the denial log was told of.", float64(d.Denials))
	w.counter("mete_denial_log_lines_total", "Lines that they became.", float64(d.Lines))
	w.counter("mete_denial_log_unlogged_total", "Of the denials, those that are in no line: of keys for which there was no room.", float64(d.Unlogged))
	w.gauge("mete_denial_log_bursts", "Keys that were denied of late.", float64(d.Bursts))
}
