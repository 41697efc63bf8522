// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/metehq/mete"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// MaxRules is the number of rules with their own time series. Additional rules share the series of [OtherRules].
const MaxRules = 200

// Labels for decisions without a rule in the active policy. A rule with the same name shares the series.
const (
	OtherRules = "(other)" // rules beyond MaxRules, and rules of a replaced policy
	NoRule     = "(none)"  // no rule applied, or an override decided
)

// failures are the reasons for decisions without the store.
var failures = [...]store.Failure{store.FailureTimeout, store.FailureUnavailable, store.FailureOverloaded, store.FailureError}

// softened are the reasons why a rule did not deny a request that exceeded its limit.
var softened = [...]string{"shadow", "percentage", "override"}

// softenedBy returns the index in softened for the mode of a rule.
func softenedBy(m policy.Mode) int {
	switch {
	case m.IsPartial():
		return 1
	case m < policy.ModeShadow: // an override changed an enforced rule
		return 2
	}
	return 0
}

// settlements are the results of [policy.Settlement].
var settlements = [...]string{"refunded", "kept", "changed", "failed"}

// settlementIndex returns the index in settlements.
func settlementIndex(s *policy.Settlement) int {
	switch {
	case s.Err != nil:
		return 3
	case s.Charged == 0:
		return 0
	case s.Charged == s.Reserved:
		return 1
	}
	return 2
}

type ruleCount struct {
	awaits                atomic.Bool // a limit is charged by responses
	settled               [len(settlements)]atomic.Uint64
	allowed, denied, near atomic.Uint64
	skipped               atomic.Uint64
	shadow                [len(softened)]atomic.Uint64
	degraded              [len(failures)]atomic.Uint64
}

// ruleCounts holds the counters of a policy's rules. Counting takes no lock.
type ruleCounts struct {
	mu          sync.Mutex // held while the policy is replaced
	names       atomic.Pointer[map[string]*ruleCount]
	other, none ruleCount
}

// SetPolicy replaces the rules. Rules that both policies have keep their counts. The counts of other rules are
// dropped and would restart at 0.
func (r *Registry) SetPolicy(m *policy.Matcher) {
	c := &r.rules
	c.mu.Lock()
	defer c.mu.Unlock()
	var before map[string]*ruleCount
	if p := c.names.Load(); p != nil {
		before = *p
	}
	rules := m.Rules()
	names := make(map[string]*ruleCount, min(len(rules), MaxRules))
	for _, rule := range rules[:min(len(rules), MaxRules)] {
		switch {
		case rule.Name == OtherRules || rule.Name == NoRule: // its series are there
		case before[rule.Name] != nil:
			names[rule.Name] = before[rule.Name]
		default:
			names[rule.Name] = new(ruleCount)
		}
		if r := names[rule.Name]; r != nil {
			r.awaits.Store(slices.ContainsFunc(rule.Limits, func(l policy.Limit) bool { return l.AwaitsResponse() }))
		}
	}
	c.names.Store(&names)
}

func (c *ruleCounts) counter(name string) *ruleCount {
	if name == "" {
		return &c.none
	}
	if names := c.names.Load(); names != nil {
		if r := (*names)[name]; r != nil {
			return r
		}
	}
	return &c.other
}

// count counts a decision for the rule that made it and for all other rules that limited the request. A rule with
// several limits counts once.
func (c *ruleCounts) count(d *mete.Decision) {
	rule := c.counter(d.Rule)
	if d.Allowed {
		rule.allowed.Add(1)
	} else {
		rule.denied.Add(1)
	}
	if d.Degraded {
		rule.degraded[failureIndex(d.Failure)].Add(1)
	}
	for _, r := range d.Skipped {
		c.counter(r.Name).skipped.Add(1)
	}
	var last *policy.Rule
	for i := range d.Limits() {
		if s := &d.Limits()[i]; d.Allowed && s.Rule != last && s.Near() {
			last = s.Rule
			c.counter(s.Rule.Name).near.Add(1)
		}
	}
	for i := range d.Shadow {
		if s := &d.Shadow[i]; s.Rule != last && !s.Allowed {
			last = s.Rule
			c.counter(s.Rule.Name).shadow[softenedBy(s.Rule.Mode)].Add(1)
		}
	}
}

// failureIndex returns the index in failures. Unknown failures count as errors.
func failureIndex(f store.Failure) int {
	for i := range failures {
		if failures[i] == f {
			return i
		}
	}
	return len(failures) - 1
}

var (
	ruleDecisions = prometheus.NewDesc("mete_rule_decisions_total",
		"Decisions by deciding rule: for a denial the rule with the longest wait, otherwise the rule with the fewest tokens left.",
		[]string{"rule", "outcome"}, nil)
	ruleNear = prometheus.NewDesc("mete_rule_near_limit_total",
		"Requests that a rule admitted with at most a fifth of its limit left.", []string{"rule"}, nil)
	ruleSkipped = prometheus.NewDesc("mete_rule_skipped_total",
		"Requests that a rule did not limit because they lack an attribute of its limit_keys (on_missing: skip).", []string{"rule"}, nil)
	ruleShadow = prometheus.NewDesc("mete_rule_shadow_denials_total",
		"Requests over a limit that the rule did not deny, by reason: mode shadow, a percentage of keys, or an override.",
		[]string{"rule", "mode"}, nil)
	ruleDegraded = prometheus.NewDesc("mete_rule_degraded_total",
		"Decisions without the store, by rule and reason.", []string{"rule", "reason"}, nil)
	ruleSettled = prometheus.NewDesc("mete_rule_settlements_total",
		"Charges that a response settled, by rule and result: refunded, kept, changed, or failed (not all of the final cost was applied).",
		[]string{"rule", "result"}, nil)
)

// rules writes the counters of rules. It includes zeros, because Prometheus sees no increase in a counter that
// first appears with 1. It omits zeros of results that cannot occur.
func (w writer) rules(c *ruleCounts) {
	w.rule(NoRule, &c.none, false)
	w.rule(OtherRules, &c.other, false)
	if names := c.names.Load(); names != nil {
		for name, r := range *names {
			w.rule(name, r, true)
		}
	}
}

func (w writer) rule(name string, r *ruleCount, always bool) {
	send := func(d *prometheus.Desc, always bool, n uint64, labels ...string) {
		if n > 0 || always {
			w.to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
		}
	}
	send(ruleDecisions, always, r.allowed.Load(), name, "allowed")
	send(ruleDecisions, always, r.denied.Load(), name, "denied")
	send(ruleNear, always, r.near.Load(), name)
	send(ruleSkipped, always, r.skipped.Load(), name)
	for i := range softened {
		send(ruleShadow, always && i == 0, r.shadow[i].Load(), name, softened[i])
	}
	for i := range failures {
		send(ruleDegraded, false, r.degraded[i].Load(), name, string(failures[i]))
	}
	for i := range settlements {
		send(ruleSettled, r.awaits.Load(), r.settled[i].Load(), name, settlements[i])
	}
}
