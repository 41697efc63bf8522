// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"context"
	"slices"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

// degraded is the decision where the store could not answer. One rule that says
// closed refuses the request. If none does, those that say local decide, all or
// nothing; those that say open have no part in it.
func (l *Limiter) degraded(ctx context.Context, s *scratch, req *Request, mode Mode, r *receipt, err error) Decision {
	d := Decision{Allowed: true, Degraded: true, Failure: failureOf(err), Err: err}
	switch {
	case l.closed(s, &d):
	case l.fallback != nil && l.anyLocal(s.matches[:s.enforced], s.own):
		l.locally(ctx, s, &d, req, mode, r)
	}
	if d.Allowed {
		l.letThrough(s, &d, mode)
	}
	if mode.DryRun {
		return d
	}
	switch {
	case d.Reason == ReasonStoreError:
		l.counts.closed.Add(1)
	case len(d.Limits) > 0:
		l.counts.local.Add(1)
	default:
		l.counts.open.Add(1)
	}
	return d
}

// closed refuses the request if a rule says so.
func (l *Limiter) closed(s *scratch, d *Decision) bool {
	for i := range s.enforced + len(s.own) {
		if l.onStoreError(s.matches[:s.enforced], i) != policy.Closed {
			continue
		}
		if d.refuse(); i < s.enforced {
			d.Rule = s.matches[i].Rule.Name
		}
		return true
	}
	return false
}

// storeRetry is when it is worth asking again whether the store answers: the breaker
// in front of one lets somebody try twice in that time. There is nothing exact in it.
const storeRetry = time.Second

// refuse makes d the decision that nobody could make.
func (d *Decision) refuse() {
	d.Allowed, d.Reason, d.RetryAfter = false, ReasonStoreError, storeRetry
}

// onStoreError is what the i'th of matches and own charges does.
func (l *Limiter) onStoreError(matches []policy.Match, i int) policy.OnStoreError {
	if i < len(matches) {
		return matches[i].Rule.OnStoreError
	}
	return l.config.OnStoreError
}

// anyLocal reports whether any of them is decided locally. Rules in shadow are
// not: they have no say.
func (l *Limiter) anyLocal(matches []policy.Match, own []Charge) bool {
	for i := range matches {
		if matches[i].Rule.OnStoreError == policy.Local {
			return !matches[i].Shadow
		}
	}
	return len(own) > 0 && l.config.OnStoreError == policy.Local
}

// see remembers what the store showed of buckets that may have to be decided
// locally.
func (l *Limiter) see(s *scratch, matches []policy.Match, spent bool) {
	now, noted := l.fallback.now(), l.fallback.flying.sent.Load()
	for i, at := range s.order {
		if l.onStoreError(matches, at) == policy.Local {
			cost := bucket.Tokens(0)
			if spent {
				cost = s.snaps[i].Cost
			}
			l.fallback.known.see(s.charges[i].Key, &s.snaps[i], cost, now, s.trip.sent, noted)
		}
	}
}

// locally takes from the local buckets of those who say local.
func (l *Limiter) locally(ctx context.Context, s *scratch, d *Decision, req *Request, mode Mode, r *receipt) {
	matches, kept := s.matches[:s.enforced], 0
	for i, at := range s.order {
		if l.onStoreError(matches, at) == policy.Local {
			s.charges[kept], s.order[kept] = s.charges[i], at
			kept++
		}
	}
	s.charges, s.order = s.charges[:kept], s.order[:kept]
	var err error
	s.snaps, s.accounts, d.Allowed, err = l.fallback.take(ctx, s.snaps[:0], s.charges, mode, s.accounts[:0], &s.trip)
	if err != nil {
		d.refuse()
		d.Rule, _ = s.names(0)
		return
	}
	all := s.statuses(matches, s.enforced+len(s.own))
	d.Limits = slices.DeleteFunc(all, func(status Status) bool { return status.Rule == nil })
	s.conclude(d, req, mode, r)
}

// letThrough counts what those let through who say open.
func (l *Limiter) letThrough(s *scratch, d *Decision, mode Mode) {
	matches, sum := s.matches[:s.enforced], bucket.Tokens(0)
	got, part := d.Taken, mode.UpTo && len(d.Limits) > 0
	for i := range s.enforced + len(s.own) {
		if l.onStoreError(matches, i) != policy.Open {
			continue
		}
		cost := bucket.Tokens(0)
		if i < s.enforced {
			cost = matches[i].Cost
		} else {
			cost = s.own[i-s.enforced].Cost
		}
		if part {
			cost = min(cost, got)
		}
		d.Taken, sum = max(d.Taken, cost), sum+cost
	}
	if !mode.DryRun {
		l.counts.through.Add(int64(sum))
	}
}
