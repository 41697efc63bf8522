// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/buildinfo"
	"github.com/metehq/mete/cmd/internal/denials"
	"github.com/metehq/mete/cmd/internal/metrics"
	"github.com/metehq/mete/cmd/internal/stores"
	"github.com/metehq/mete/cmd/internal/telemetry"
	"github.com/metehq/mete/cmd/internal/webhook"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/monitor"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/topkeys"
)

// countDecisions counts all decisions and logs decisions without the store.
func (a *assembly) countDecisions(b *buckets, watch *telemetry.Watch) {
	watches, skipped := new(monitor.Watches), newSkipLog()
	failed := limitErrors(b.log, "store call failed")
	a.live.Watches = watches
	a.onPolicy = append(a.onPolicy, skipped.setPolicy)
	a.onDecision = append(a.onDecision, func(ctx context.Context, d *mete.Decision) {
		a.metrics.Count(d)
		watch.RecordDecision(ctx, d)
		watches.OnDecision(ctx, d)
		for _, r := range d.Skipped {
			skipped.record(a.log, r)
		}
		if d.Degraded && d.Err != nil {
			failed(d.Err)
		}
	})
	if m, ok := b.opened.(*stores.Memory); ok {
		a.watchMemory(m, b)
	}
}

// countSettlements counts the responses that settle charges, and logs settlements that failed.
func (a *assembly) countSettlements() func(context.Context, *policy.Settlement) {
	failed := limitErrors(a.log, "charge not settled by the response")
	return func(ctx context.Context, s *policy.Settlement) {
		a.metrics.CountSettlement(s)
		a.live.AI.OnSettlement(ctx, s)
		if s.Err != nil && !errors.Is(s.Err, mete.ErrDebt) {
			failed(s.Err)
		}
	}
}

var errFull = errors.New("each rule follows its on_full for new keys; raise max_keys")

// watchMemory logs when the store becomes full.
func (a *assembly) watchMemory(m *stores.Memory, b *buckets) {
	full := limitErrors(b.log, "store full")
	var spilled atomic.Uint64 // the last seen count
	a.onDecision = append(a.onDecision, func(context.Context, *mete.Decision) {
		if now := m.Stats().Spilled(); now != spilled.Load() && spilled.Swap(now) != now {
			b.health.full.Store(time.Now().UnixNano())
			full(errFull)
		}
	})
}

// addDenialLog logs denials unless the log level hides them.
func (a *assembly) addDenialLog(b *buckets) {
	c := a.config.DenialLog
	if c.Interval == 0 || !a.log.Enabled(context.Background(), slog.LevelInfo) {
		return
	}
	l := denials.New(denials.Config{
		Logger: a.log, Interval: c.Interval, PerSecond: c.MaxLines, Raw: c.Raw, Key: b.keyFor("denial log"),
	})
	a.add(background("denial log", l.Run))
	a.metrics.Add(metrics.Denials(l.Stats))
	a.onDenial = append(a.onDenial, l.Record)
	a.addAttributes("ip:address")
}

// addDenialWebhook posts denials to the endpoint in the settings. The sender stops after the denial log, which
// writes to it.
func (a *assembly) addDenialWebhook(b *buckets) {
	c, log := a.config.DenialWebhook, a.config.DenialLog
	if c.URL == nil {
		return
	}
	sender := webhook.New(webhook.Config{
		URL: c.URL.String(), Headers: headerFields(c.Headers), Secret: []byte(c.Secret), Batch: c.Batch, Interval: c.Interval, Queue: c.Queue,
		Drain: min(a.config.Timeouts.Drain, webhookDrain), Log: a.log,
	})
	a.add(background("denial webhook", sender.Run))
	l := denials.New(denials.Config{
		Logger: slog.New(slog.NewJSONHandler(sender, &slog.HandlerOptions{ReplaceAttr: webhook.DurationText})), Interval: cmp.Or(log.Interval, time.Minute),
		PerSecond: webhookLines, Raw: log.Raw, Key: b.keyFor("denial log"),
	})
	a.add(background("denials for the webhook", l.Run))
	a.metrics.Add(metrics.DenialWebhook(sender.Stats))
	a.onDenial = append(a.onDenial, l.Record)
	a.addAttributes("ip:address")
}

const (
	// webhookLines bounds the lines per second for the webhook.
	webhookLines = 1000

	// webhookDrain bounds the time for sending the remaining lines at shutdown.
	webhookDrain = 5 * time.Second
)

// headerFields parses header fields of the form name=value, which config has validated.
func headerFields(settings []string) map[string]string {
	fields := make(map[string]string, len(settings))
	for _, h := range settings {
		name, value, _ := strings.Cut(h, "=")
		fields[name] = value
	}
	return fields
}

// addAttributes adds attributes that the hooks read.
func (a *assembly) addAttributes(names ...string) {
	for _, name := range names {
		if attribute, err := policy.ParseAttribute(name); err == nil { // config has validated attributes in settings
			a.alsoRead = append(a.alsoRead, attribute)
		}
	}
}

// addTop counts the keys with most denials and the keys near a limit, unless the settings disable counters.
func (a *assembly) addTop(b *buckets) error {
	if a.config.TopKeys == 0 {
		return nil
	}
	begin := time.Now()
	now := func() bucket.Instant { return bucket.At(begin.Add(time.Since(begin))) } // a monotonic clock
	tracker, err := topkeys.New(topkeys.Config{Counters: a.config.TopKeys}, now())
	if err != nil {
		return err
	}
	a.onDenial = append(a.onDenial, func(_ context.Context, d *mete.Denial) { tracker.OnDenial(now(), d) })
	a.onNear = append(a.onNear, func(_ context.Context, d *mete.Denial) { tracker.OnNearLimit(now(), d) })
	a.onPolicy = append(a.onPolicy, func(m *policy.Matcher) { // drop counters of removed rules
		names := map[string]bool{}
		for _, r := range m.Rules() {
			names[r.Name] = true
		}
		tracker.Retain(func(rule string) bool { return names[rule] })
	})
	a.metrics.Add(metrics.Top(tracker.Stats))
	a.top = httpapi.Top{Tracker: tracker, Now: now, MaskKey: b.keyFor("top keys")}
	return nil
}

// skipLogInterval is the shortest time between two records about one rule.
const skipLogInterval = time.Minute

// A skipLog logs that a rule does not limit requests because they lack an attribute of its key. The log has the
// names of rules and attributes, but no values. Recording takes no lock.
type skipLog struct {
	mu     sync.Mutex // held while the policy is replaced
	byRule atomic.Pointer[map[string]*skips]
}

// skips counts the skipped requests of one rule.
type skips struct {
	count  atomic.Uint64 // since the last record
	logged atomic.Int64  // Unix nanoseconds of the last record; 0 for none
}

func newSkipLog() *skipLog {
	l := new(skipLog)
	l.byRule.Store(&map[string]*skips{})
	return l
}

// setPolicy replaces the rules. Rules that stay keep their interval.
func (l *skipLog) setPolicy(m *policy.Matcher) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := *l.byRule.Load()
	rules := make(map[string]*skips, len(m.Rules()))
	for _, r := range m.Rules() {
		s, stays := before[r.Name]
		if !stays {
			s = new(skips)
		}
		rules[r.Name] = s
	}
	l.byRule.Store(&rules)
}

// record counts a request that r did not limit. It logs the first one immediately. Then it logs at most one record per
// interval, with the number of requests since the last record.
func (l *skipLog) record(log *slog.Logger, r *policy.Rule) {
	rules := l.byRule.Load()
	s, known := (*rules)[r.Name]
	if !known {
		return // the policy was just replaced
	}
	s.count.Add(1)
	now, last := time.Now().UnixNano(), s.logged.Load()
	if last != 0 && now-last < int64(skipLogInterval) || !s.logged.CompareAndSwap(last, now) {
		return
	}
	names := make([]string, len(r.LimitKeys))
	for i, a := range r.LimitKeys {
		names[i] = a.String()
	}
	log.Info("rule skipped, requests lack an attribute of limit_keys", "rule", r.Name,
		"limit_keys", strings.Join(names, ","), "requests", s.count.Swap(0))
}

// telemetryTimeout bounds the last export at shutdown.
const telemetryTimeout = 2 * time.Second

// serviceName is the default of OTEL_SERVICE_NAME.
const serviceName = "mete"

// openTelemetry starts measuring requests. If the settings name a collector, it exports traces and metrics.
func (a *assembly) openTelemetry(ctx context.Context) (*telemetry.Watch, error) {
	c := a.config.Telemetry
	if c.Endpoint == nil {
		var none *telemetry.Telemetry
		a.metrics.Add(metrics.Telemetry(none.Stats))
		return telemetry.NewWatch(none, a.metrics.ObserveDecision), nil
	}
	t, err := telemetry.New(ctx, telemetry.Config{
		Endpoint: c.Endpoint, Headers: headerFields(c.Headers), Sample: c.Sample, Interval: c.Interval,
		Service: serviceName, Version: buildinfo.Read().Version, Metrics: a.metrics.Gatherer(),
		Failed: limitErrors(a.log, "telemetry export failed", "endpoint", c.Endpoint.String()),
	})
	if err != nil {
		return nil, err
	}
	a.add(newCloser("telemetry", func() {
		ctx, cancel := context.WithTimeout(context.Background(), telemetryTimeout)
		defer cancel()
		if err := t.Close(ctx); err != nil {
			a.log.Warn("telemetry export incomplete", "err", err)
		}
	}))
	a.metrics.Add(metrics.Telemetry(t.Stats))
	a.log.Info("telemetry exported", "endpoint", c.Endpoint.String(), "sample", c.Sample, "metrics_each", c.Interval)
	return telemetry.NewWatch(t, a.metrics.ObserveDecision), nil
}
