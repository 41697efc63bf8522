// SPDX-License-Identifier: Apache-2.0

package denials

import (
	"context"
	"log/slog"
	"time"

	"github.com/metehq/mete/internal/follow"
)

const sweepInterval = time.Second

// Run logs the counts of bursts that have ended until ctx ends. Then it logs all remaining counts, up to the limit
// of lines per second.
func (l *Log) Run(ctx context.Context) {
	follow.Every(ctx, min(sweepInterval, l.config.Interval), func() { l.sweep(ctx, time.Now(), false) })
	l.sweep(context.WithoutCancel(ctx), time.Now(), true)
}

// A pending line is written after the shards are unlocked.
type pending struct {
	id   id
	line burst
}

func (l *Log) sweep(ctx context.Context, now time.Time, last bool) {
	var lines []pending
	for n := range l.shards {
		s := &l.shards[n]
		s.mu.Lock()
		for i, b := range s.bursts {
			if last {
				b.last = time.Time{}
			}
			if line, due := l.due(b, now); due {
				lines = append(lines, pending{i, line})
			} else if b.count == 0 && now.Sub(b.last) >= l.config.Interval {
				delete(s.bursts, i)
			}
		}
		s.mu.Unlock()
	}
	for _, p := range lines {
		l.write(ctx, p.id, p.line)
	}
	if n := l.unlogged.Load() - l.reported; n > 0 && (last || now.Sub(l.reportedAt) >= l.config.Interval) {
		l.reported, l.reportedAt = l.reported+n, now
		l.lines.Add(1)
		l.config.Logger.LogAttrs(ctx, slog.LevelInfo, "denied: more keys than the denial log can track", slog.Uint64("times", n))
	}
}
