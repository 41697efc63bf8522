// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/overrides"
	"github.com/metehq/mete/policy"
)

// decisionOf converts d to JSON, using the memory of limits. It omits shadow limits.
func decisionOf(d *mete.Decision, limits []api.Limit) api.Decision {
	x := api.Decision{
		Allowed: d.Allowed, Rule: d.Rule, Reason: d.Reason, RetryAfter: api.Seconds(d.RetryAfter), Wait: api.Seconds(d.Wait), Degraded: d.Degraded,
		Override: overrideID(d.Override),
	}
	if d.Slots != nil {
		x.Slot, x.Lease = d.Slots.ID().String(), api.Seconds(d.Slots.Lease())
	}
	if d.Degraded {
		x.Failure = string(d.Failure)
	}
	for i := range d.Limits() {
		s := &d.Limits()[i]
		l := api.Limit{
			Rule: s.Rule.Name, Limit: s.Limit.Name, Remaining: s.Room().Whole(), Owed: api.Amount(max(s.Debt(), 0)),
			RetryAfter: api.Seconds(s.RetryAfter), FullAfter: api.Seconds(s.FullAfter()), Penalty: api.PenaltyOf(s.Penalty()), StoreFull: s.Spill.String(), Override: overrideID(s.Limit.Override),
		}
		if len(s.Limit.Stages) > 0 {
			if stage := s.Stage(); stage != nil {
				l.Stage = stage.Share
			}
		}
		limits = append(limits, l)
	}
	x.Limits = limits
	return x
}

func overrideID(o *policy.Override) string {
	if o == nil {
		return ""
	}
	return o.ID
}

func levelOf(s *bucket.Snapshot) *api.Level {
	return &api.Level{Remaining: api.Amount(s.Room()), Owed: api.Amount(max(s.Debt(), 0))}
}

// timeAfter returns the time that is wait after at, or nil for an endless wait.
func timeAfter(at bucket.Instant, wait time.Duration) *time.Time {
	if wait == bucket.Never {
		return nil
	}
	t := at.Add(wait).Time()
	return &t
}

func overrideOf(o *policy.Override) *api.Override {
	if o == nil {
		return nil
	}
	return &api.Override{
		ID: o.ID, Action: string(o.Action), Rules: o.Rules, Match: o.Match, Key: o.Key, Algorithm: o.Algorithm, Config: o.Config, Limits: o.Limits,
		Reason: o.Reason, Author: o.Author, CreatedAt: o.CreatedAt, ExpiresAt: o.ExpiresAt,
	}
}

func statusOf(s *overrides.Status) api.OverrideStatus {
	return api.OverrideStatus{Override: *overrideOf(&s.Override), State: string(s.State), Source: string(s.Source), Mistakes: errorDetails(s.Mistakes)}
}

func entryOf(e *overrides.Entry) api.AuditEntry {
	tokens, _ := bucket.ParseTokens(string(e.Tokens)) // empty for an override
	return api.AuditEntry{
		ID: e.ID, At: e.At, What: string(e.Kind), Override: e.Override, Author: e.Author, Reason: e.Reason, Key: e.Key, Tokens: api.Amount(tokens),
		Role: e.Role, From: e.From, Before: overrideOf(e.Before), After: overrideOf(e.After),
	}
}

func errorDetails(es policy.Errors) (list []api.ErrorDetail) {
	for _, e := range es {
		m := api.ErrorDetail{Pointer: e.Path, Detail: e.Reason, Hint: e.Hint}
		if e.Value != "" {
			m.Detail += " (got " + e.Value + ")"
		}
		list = append(list, m)
	}
	return list
}
