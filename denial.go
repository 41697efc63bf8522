// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"context"

	"github.com/metehq/mete/policy"
)

// A Denial is a decision that denies a request, or would if shadow rules were
// enforced, or soon will, with what was known of who asked: see [Config.OnDenial]
// and [Config.OnNearLimit]. As a
// [slog.LogValuer] it is its decision, which says nothing about that.
type Denial struct {
	Decision

	// Attributes are the request's, and never nil.
	Attributes policy.Attributes

	// Keys are those of the buckets that Limits shows, and ShadowKeys of those that
	// Shadow does, each at the place of its status.
	Keys, ShadowKeys []string
}

// report calls the hooks, and those who watch. That of decisions gets a copy, so that
// decisions need not live on the heap.
func (l *Limiter) report(ctx context.Context, s *scratch, req *Request, d *Decision) {
	if l.config.OnDecision != nil {
		s.seen, s.seen.Skipped = *d, s.skipped
		l.config.OnDecision(ctx, &s.seen)
		s.seen = Decision{}
	}
	if table := l.watches.table.Load(); table != nil {
		l.tell(ctx, s, d, *table)
	}
	denied := l.config.OnDenial != nil && (!d.Allowed || d.shadowDenial() != nil)
	near := l.config.OnNearLimit != nil && d.Allowed && d.near()
	if !denied && !near {
		return
	}
	denial := &s.denial
	denial.Decision, denial.Attributes = *d, req.Attributes
	if denial.Attributes == nil {
		denial.Attributes = Attrs(nil)
	}
	denial.Keys = l.shownKeys(denial.Keys[:0], s, d)
	denial.ShadowKeys = denial.ShadowKeys[:0]
	for i := range d.Shadow {
		denial.ShadowKeys = append(denial.ShadowKeys, s.matches[s.enforced+i].Key)
	}
	defer denial.forget()
	if denied {
		l.config.OnDenial(ctx, denial)
	}
	if near {
		l.config.OnNearLimit(ctx, denial)
	}
}

// shownKeys appends the keys of d's limits: of all that were asked about or,
// without the store, of those that were decided locally.
func (l *Limiter) shownKeys(keys []string, s *scratch, d *Decision) []string {
	if len(d.Limits) == 0 {
		return keys
	}
	matches := s.matches[:s.enforced]
	for i := range s.enforced + len(s.own) {
		switch {
		case d.Degraded && l.onStoreError(matches, i) != policy.Local:
		case i < s.enforced:
			keys = append(keys, matches[i].Key)
		default:
			keys = append(keys, s.own[i-s.enforced].Key)
		}
	}
	return keys
}

// forget lets go of the request.
func (d *Denial) forget() {
	clear(d.Keys)
	clear(d.ShadowKeys)
	*d = Denial{Keys: d.Keys[:0], ShadowKeys: d.ShadowKeys[:0]}
}
