// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"cmp"
	"runtime"
	"time"

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

// read returns a source that calls stats and writes the result.
func read[S any](stats func() S, write func(writer, S)) Source {
	return func(w writer) { write(w, stats()) }
}

// Limiter returns the metrics of the limiter.
func Limiter(stats func() mete.Stats) Source { return read(stats, writer.limiter) }

// Memory, Redis and Postgres return the metrics of a kind of store.
func Memory(stats func() memstore.Stats) Source  { return read(stats, writer.memory) }
func Redis(stats func() redisstore.Stats) Source { return read(stats, writer.redis) }
func Postgres(stats func() pgstore.Stats) Source { return read(stats, writer.postgres) }

// Guard returns the metrics of the circuit breaker. DeniedFromMemory returns those of the denial cache. Both exist
// only for shared stores.
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

// Nodes returns the number of servers that share the store.
func Nodes(n func() int) Source {
	return read(n, func(w writer, n int) {
		w.gauge("mete_nodes", "Servers that share the store, this one included, as last seen.", float64(n))
	})
}

// Policy returns the metrics of the active policy.
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
	w.with("signal", "traces").counter("mete_otlp_exports_failed_total", help, float64(t.TracesFailed))
	w.with("signal", "metrics").counter("mete_otlp_exports_failed_total", help, float64(t.MetricsFailed))
}

func (w writer) log(l logpipe.Stats) {
	w.counter("mete_log_lines_total", "Lines of the log.", float64(l.Lines))
	w.counter("mete_log_lines_dropped_total", "Of these, lines that nobody took from the pipe in time.", float64(l.Dropped))
}

func (w writer) denialWebhook(s webhook.Stats) {
	w.results("mete_denial_webhook_lines_total", "Lines for the denial webhook, by result: the queue dropped them, or the endpoint failed.",
		result{"sent", s.Sent}, result{"dropped", s.Dropped}, result{"failed", s.Failed})
	w.gauge("mete_denial_webhook_waiting", "Lines that wait for the denial webhook.", float64(s.Waiting))
}

func (w writer) denials(d denials.Stats) {
	w.counter("mete_denial_log_denials_total", "Denials, shadow rules' included, that the denial log was told of.", float64(d.Denials))
	w.counter("mete_denial_log_lines_total", "Lines that they became.", float64(d.Lines))
	w.counter("mete_denial_log_unlogged_total", "Of the denials, those that are in no line: of keys for which there was no room.", float64(d.Unlogged))
	w.gauge("mete_denial_log_bursts", "Keys that were denied of late.", float64(d.Bursts))
}

func (w writer) claims(s jwtclaims.Stats) {
	w.counter("mete_jwt_verified_total", "Bearer tokens that were verified and good.", float64(s.Verified))
	w.counter("mete_jwt_cached_total", "Lookups of claims in tokens that had been verified less than a minute before.", float64(s.Cached))
	for reason, n := range s.Refused {
		w.with("reason", string(reason)).counter("mete_jwt_refused_total", "Bearer tokens that were refused, so that their claims were missing.", float64(n))
	}
	w.gauge("mete_jwt_keys", "Keys of the key set that tokens are verified with.", float64(s.Keys))
	w.counter("mete_jwt_key_reads_total", "How often the key set was read.", float64(s.Reads))
	w.counter("mete_jwt_key_reads_failed_total", "How often the key set could not be read.", float64(s.ReadsFailed))
	w.counter("mete_jwt_key_changes_total", "How often the key set had changed, the first time included.", float64(s.Changes))
	if !s.ReadAt.IsZero() {
		w.gauge("mete_jwt_keys_age_seconds", "How long ago the key set was last read.", time.Since(s.ReadAt).Seconds())
	}
}

// ownGauges are extra gauges for actions that alerts use. They are 1 while such an override is active.
var ownGauges = map[policy.Action]struct{ name, help string }{
	policy.ActionShadow:     {"mete_policy_global_shadow", "1 while an override keeps rules from denying anything: for all requests, or for some."},
	policy.ActionBreakGlass: {"mete_break_glass", "1 while an override lets everything pass."},
}

// overrides writes the number of active overrides by action.
func (w writer) overrides(n map[policy.Action]int) {
	for _, kind := range policy.Actions() {
		a := kind.Action
		if own, ok := ownGauges[a]; ok {
			w.gauge(own.name, own.help, float64(min(n[a], 1)))
			continue
		}
		w.with("action", string(a)).gauge("mete_overrides_in_force", "Overrides in force, those of the policy included, by what they do.", float64(n[a]))
	}
}

func (w writer) top(s topkeys.Stats) {
	w.counter("mete_top_recorded_total", "Keys that were counted for mete top: of denials, of shadow rules' denials, and of requests near a limit.", float64(s.Recorded))
	w.counter("mete_top_dropped_total", "Keys that were not, because others were being counted at the same moment, or for want of memory.", float64(s.Dropped))
	w.gauge("mete_top_keys", "Keys that have a counter at this moment.", float64(s.Keys))
	w.gauge("mete_top_bytes", "Memory of these counters.", float64(s.Bytes))
}

func (w writer) violations(s violations.Stats) {
	w.counter("mete_violations_recorded_total", "Denials, shadow rules' included, that were to be recorded.", float64(s.Recorded))
	w.counter("mete_violations_written_total", "Of these, denials that are in the database.", float64(s.Written))
	w.counter("mete_violations_rows_total", "Rows that hold them.", float64(s.Rows))
	w.counter("mete_violations_overflowed_total", "Of the recorded, denials of keys for which there was no room: their number is known, but not whose they were.", float64(s.Overflowed))
	w.counter("mete_violations_dropped_total", "Of the recorded, denials that are not in the database and never will be.", float64(s.Dropped))
	w.counter("mete_violations_failed_total", "Writes that failed, and were tried again.", float64(s.Failed))
	w.gauge("mete_violations_waiting", "Denials that are still to be written.", float64(s.Waiting))
	w.gauge("mete_violations_queue", "Rows that are still to be written.", float64(s.Queue))
}
