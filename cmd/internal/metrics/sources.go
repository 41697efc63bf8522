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

func read[S any](stats func() S, write func(writer, S)) Source {
	return func(w writer) { write(w, stats()) }
}

// Limiter returns the metrics of the limiter.
func Limiter(stats func() mete.Stats) Source { return read(stats, writer.limiter) }

// Memory, Redis and Postgres return the metrics of a kind of store.
func Memory(stats func() memstore.Stats) Source  { return read(stats, writer.memory) }
func Redis(stats func() redisstore.Stats) Source { return read(stats, writer.redis) }
func Postgres(stats func() pgstore.Stats) Source { return read(stats, writer.postgres) }

// Guard returns the metrics of the circuit breaker. DeniedFromMemory returns the metrics of the denial cache. Both exist
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
		w.gauge("mete_nodes", "Servers that share the store, including this one.", float64(n))
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
	d := prometheus.NewDesc("mete_build_info", "Always 1, with labels for the version of mete, its commit and the version of Go.", []string{"version", "revision", "go"}, nil)
	w.to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, 1,
		cmp.Or(b.Version, "unknown"), cmp.Or(b.Revision, "unknown"), runtime.Version())
}

func (w writer) telemetry(t telemetry.Stats) {
	w.counter("mete_otlp_spans_total", "Ended spans of sampled requests.", float64(t.Spans))
	w.counter("mete_otlp_spans_exported_total", "Spans among them that the collector accepted. The others are queued, failed or were dropped.", float64(t.Exported))
	const help = "Failed exports to the collector by kind."
	w.withLabel("signal", "traces").counter("mete_otlp_exports_failed_total", help, float64(t.TracesFailed))
	w.withLabel("signal", "metrics").counter("mete_otlp_exports_failed_total", help, float64(t.MetricsFailed))
}

func (w writer) log(l logpipe.Stats) {
	w.counter("mete_log_lines_total", "Log lines.", float64(l.Lines))
	w.counter("mete_log_lines_dropped_total", "Log lines among them that were dropped because the reader of the log was too slow.", float64(l.Dropped))
}

func (w writer) denialWebhook(s webhook.Stats) {
	w.results("mete_denial_webhook_lines_total", "Lines for the denial webhook by result: sent, dropped by the queue, or failed at the endpoint.",
		result{"sent", s.Sent}, result{"dropped", s.Dropped}, result{"failed", s.Failed})
	w.gauge("mete_denial_webhook_waiting", "Lines in the queue of the denial webhook.", float64(s.Waiting))
}

func (w writer) denials(d denials.Stats) {
	w.counter("mete_denial_log_denials_total", "Denials for the denial log, including rules in shadow.", float64(d.Denials))
	w.counter("mete_denial_log_lines_total", "Lines of the denial log.", float64(d.Lines))
	w.counter("mete_denial_log_unlogged_total", "Denials that are in no line, because the denial log could not track their keys.", float64(d.Unlogged))
	w.gauge("mete_denial_log_bursts", "Keys that the denial log tracks.", float64(d.Bursts))
}

func (w writer) claims(s jwtclaims.Stats) {
	w.counter("mete_jwt_verified_total", "Bearer tokens that were verified successfully.", float64(s.Verified))
	w.counter("mete_jwt_cached_total", "Lookups of claims in tokens that were verified less than a minute before.", float64(s.Cached))
	for reason, n := range s.Rejected {
		w.withLabel("reason", string(reason)).counter("mete_jwt_refused_total", "Bearer tokens that were rejected, so that their claims were missing.", float64(n))
	}
	w.gauge("mete_jwt_keys", "Keys in the key set for bearer tokens.", float64(s.Keys))
	w.counter("mete_jwt_key_reads_total", "Loads of the key set.", float64(s.Reads))
	w.counter("mete_jwt_key_reads_failed_total", "Failed loads of the key set.", float64(s.ReadsFailed))
	w.counter("mete_jwt_key_changes_total", "Changes of the key set, including the first load.", float64(s.Changes))
	if !s.ReadAt.IsZero() {
		w.gauge("mete_jwt_keys_age_seconds", "Time since the last successful load of the key set.", time.Since(s.ReadAt).Seconds())
	}
}

// ownGauges are extra gauges for actions that alerts use. They are 1 while such an override is active.
var ownGauges = map[policy.Action]struct{ name, help string }{
	policy.ActionShadow:     {"mete_policy_global_shadow", "1 while an override keeps rules from denying all or some requests."},
	policy.ActionBreakGlass: {"mete_break_glass", "1 while an override allows every request."},
}

func (w writer) overrides(n map[policy.Action]int) {
	for _, kind := range policy.Actions() {
		a := kind.Action
		if own, ok := ownGauges[a]; ok {
			w.gauge(own.name, own.help, float64(min(n[a], 1)))
			continue
		}
		w.withLabel("action", string(a)).gauge("mete_overrides_in_force", "Active overrides by action, including those in the policy.", float64(n[a]))
	}
}

func (w writer) top(s topkeys.Stats) {
	w.counter("mete_top_recorded_total", "Requests counted for mete top by kind: denied, denied in shadow, and near a limit.", float64(s.Recorded))
	w.counter("mete_top_dropped_total", "Requests that were not counted because of contention or lack of memory.", float64(s.Dropped))
	w.gauge("mete_top_keys", "Keys with a counter.", float64(s.Keys))
	w.gauge("mete_top_bytes", "Memory of the counters.", float64(s.Bytes))
}

func (w writer) violations(s violations.Stats) {
	w.counter("mete_violations_recorded_total", "Denials to record as violations, including rules in shadow.", float64(s.Recorded))
	w.counter("mete_violations_written_total", "Denials among them that are in the database.", float64(s.Written))
	w.counter("mete_violations_rows_total", "Rows that were written for them.", float64(s.Rows))
	w.counter("mete_violations_overflowed_total", "Recorded denials without their key, because the recorder could not track more keys.", float64(s.Overflowed))
	w.counter("mete_violations_dropped_total", "Denials that were lost before they reached the database.", float64(s.Dropped))
	w.counter("mete_violations_failed_total", "Failed writes that were retried.", float64(s.Failed))
	w.gauge("mete_violations_waiting", "Denials that are not written yet.", float64(s.Waiting))
	w.gauge("mete_violations_queue", "Rows that are not written yet.", float64(s.Queue))
}
