// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"context"
	"log/slog"

	"github.com/metehq/mete/bucket"
)

// report calls the hooks. OnDecision gets a copy, so that decisions need not live on the heap.
func (l *Limiter) report(ctx context.Context, e *evaluation, req *Request, d *Decision) {
	if l.config.OnDecision != nil {
		e.seen, e.seen.Skipped = *d, e.found.Skipped
		l.config.OnDecision(ctx, &e.seen)
		e.seen = Decision{}
	}
	denied := l.config.OnDenial != nil && (!d.Allowed || d.shadowDenial() != nil)
	near := l.config.OnNearLimit != nil && d.Allowed && d.isNear()
	if !denied && !near {
		return
	}
	e.denial = Denial{*d, req.Attributes}
	if e.denial.Attributes == nil {
		e.denial.Attributes = Attrs(nil)
	}
	if denied {
		e.setPartAttributes(req, d.denialPart)
		l.config.OnDenial(ctx, &e.denial)
	}
	if near {
		e.setPartAttributes(req, d.nearPart)
		l.config.OnNearLimit(ctx, &e.denial)
	}
	e.denial = Denial{}
}

// LogDecisions returns a hook for [Config.OnDecision] that logs every decision. The level is Warn if the store did
// not answer, and Info if the request is denied or a shadow rule would deny it. Otherwise it is Debug. It never logs
// keys. A nil logger means [slog.Default].
func LogDecisions(logger *slog.Logger) func(context.Context, *Decision) {
	if logger == nil {
		logger = slog.Default()
	}
	return func(ctx context.Context, d *Decision) {
		level, message := slog.LevelDebug, "request allowed"
		switch {
		case d.Degraded:
			level, message = slog.LevelWarn, "request decided without the store"
		case !d.Allowed:
			level, message = slog.LevelInfo, "request denied"
		case d.shadowDenial() != nil:
			level, message = slog.LevelInfo, "request would be denied"
		}
		if logger.Enabled(ctx, level) {
			logger.LogAttrs(ctx, level, message, d.attrs()...)
		}
	}
}

// LogValue implements [slog.LogValuer]. It contains the decision, its rule and its reason, but no keys.
func (d Decision) LogValue() slog.Value { return slog.GroupValue(d.attrs()...) }

func (d *Decision) attrs() []slog.Attr {
	attrs := []slog.Attr{slog.Bool("allowed", d.Allowed)}
	text := func(name, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(name, value))
		}
	}
	text("rule", d.Rule)
	if s := d.Decider(); s != nil && s.Limit.Name != d.Rule {
		text("limit", s.Limit.Name)
	}
	text("reason", d.Reason)
	if d.Override != nil {
		text("override", d.Override.ID)
	}
	switch {
	case d.RetryAfter == bucket.Never:
		text("retry_after", "never")
	case d.RetryAfter > 0:
		attrs = append(attrs, slog.Duration("retry_after", d.RetryAfter))
	}
	if d.Wait > 0 {
		attrs = append(attrs, slog.Duration("wait", d.Wait))
	}
	if d.Taken > 0 {
		text("taken", d.Taken.String())
	}
	if s := d.shadowDenial(); s != nil {
		text("shadow_rule", s.Rule.Name)
		text("shadow_reason", s.Reason())
	}
	if d.Degraded {
		attrs = append(attrs, slog.Bool("degraded", true))
		text("failure", string(d.Failure))
	}
	if d.Err != nil {
		text("error", d.Err.Error())
	}
	return attrs
}

func (d *Decision) shadowDenial() *Status {
	for i := range d.Shadow {
		if !d.Shadow[i].Allowed {
			return &d.Shadow[i]
		}
	}
	return nil
}

// denialPart returns the first part that was denied, or would be denied by a shadow rule, or -1.
func (d *Decision) denialPart() int {
	if s := d.shadowDenial(); d.Allowed && s != nil {
		return int(s.firstPart()) - 1
	}
	return d.Part()
}
