// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/internal/denials"
	"github.com/metehq/mete/cmd/internal/metrics"
	"github.com/metehq/mete/cmd/internal/stores"
	"github.com/metehq/mete/cmd/internal/telemetry"
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

// read adds attributes that the hooks read.
func (a *assembly) read(names ...string) {
	for _, name := range names {
		if attribute, err := policy.ParseAttribute(name); err == nil { // config has checked those of the settings
			a.alsoRead = append(a.alsoRead, attribute)
		}
	}
}
