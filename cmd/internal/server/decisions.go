// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/internal/denials"
	"github.com/metehq/mete/cmd/internal/metrics"
	"github.com/metehq/mete/cmd/internal/stores"
	"github.com/metehq/mete/cmd/internal/telemetry"
	"github.com/metehq/mete/cmd/internal/webhook"
	"github.com/metehq/mete/monitor"
	"github.com/metehq/mete/policy"
)

// countDecisions counts all decisions, and logs those that the store did not make.
func (a *assembly) countDecisions(b *buckets, watch *telemetry.Watch) {
	watches, skipped := new(monitor.Watches), new(skipLog)
	failed := limitErrors(b.log, "store call failed")
	a.live.Watches = watches
	a.onPolicy = append(a.onPolicy, skipped.setPolicy)
	a.onDecision = append(a.onDecision, func(ctx context.Context, d *mete.Decision) {
		a.metrics.Count(d)
		watch.Decision(ctx, d)
		watches.Decided(ctx, d)
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

// errFull is the error of a store that is at its bound.
var errFull = errors.New("new keys share one bucket for each limit; raise max_keys")

// watchMemory logs that the store is full.
func (a *assembly) watchMemory(m *stores.Memory, b *buckets) {
	full := limitErrors(b.log, "store full")
	var overflowed atomic.Uint64 // as last seen
	a.onDecision = append(a.onDecision, func(context.Context, *mete.Decision) {
		if now := m.Stats().Overflowed; now != overflowed.Load() && overflowed.Swap(now) != now {
			b.health.full.Store(time.Now().UnixNano())
			full(errFull)
		}
	})
}

// addDenialLog logs denials, unless the level of the log hides them.
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
	a.read("ip:address")
}

// addDenialWebhook posts denials, if the settings name an endpoint. The sender stops after the
// log that writes to it.
func (a *assembly) addDenialWebhook(b *buckets) {
	c, log := a.config.DenialWebhook, a.config.DenialLog
	if c.URL == "" {
		return
	}
	sender := webhook.New(webhook.Config{
		URL: c.URL, Headers: headerFields(c.Headers), Secret: []byte(c.Secret), Batch: c.Batch, Interval: c.Interval, Queue: c.Queue,
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
	a.read("ip:address")
}

const (
	// webhookLines is the most lines per second for the webhook.
	webhookLines = 1000

	// webhookDrain is the longest time that a stop waits for the webhook.
	webhookDrain = 5 * time.Second
)

// headerFields returns header fields of settings, which config has checked: name=value.
func headerFields(settings []string) map[string]string {
	fields := make(map[string]string, len(settings))
	for _, h := range settings {
		name, value, _ := strings.Cut(h, "=")
		fields[name] = value
	}
	return fields
}

// read adds attributes that the hooks read.
func (a *assembly) read(names ...string) {
	for _, name := range names {
		if attribute, err := policy.ParseAttribute(name); err == nil { // config has checked those of the settings
			a.alsoRead = append(a.alsoRead, attribute)
		}
	}
}
