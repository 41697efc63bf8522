// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"slices"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/trace"
	"github.com/metehq/mete/internal/prose"
	"github.com/metehq/mete/policy"
)

// A span is the earliest and latest time of some events.
type span struct {
	count       int64
	first, last bucket.Instant
}

func (s *span) add(at bucket.Instant) {
	if s.count == 0 {
		s.first, s.last = at, at
	}
	s.count++
	s.first, s.last = min(s.first, at), max(s.last, at)
}

// counts are the counts that [Stats] and [Comparison] share.
type counts struct {
	requests span
	invalid  int64
	line     timeline // all requests
	sparks   timeline // bins for the sparks of rules

	// The number of requests that are earlier than the previous request, and their greatest distance from the newest
	// request.
	earlier          int64
	lag              bucket.Instant
	previous, newest bucket.Instant
}

func newCounts() counts {
	return counts{line: newTimeline(timelineBins), sparks: newTimeline(sparkBins)}
}

func (c *counts) count(at bucket.Instant) {
	if c.requests.count > 0 && at < c.previous {
		c.earlier++
		c.lag = max(c.lag, c.newest-at)
	}
	if c.requests.count == 0 || at > c.newest {
		c.newest = at
	}
	c.previous = at
	c.requests.add(at)
}

// Invalid counts an invalid line.
func (c *counts) Invalid(*trace.LineError) { c.invalid++ }

// InvalidLines returns the number of invalid lines.
func (c *counts) InvalidLines() int64 { return c.invalid }

func (c *counts) Requests() int64 { return c.requests.count }

// Disorder describes requests that are out of order, with a remedy. It is empty if there are none.
func (c *counts) Disorder() string {
	if c.earlier == 0 {
		return ""
	}
	return fmt.Sprintf("%s older than the previous one (%s), by up to %s; the time of a bucket does not go back; --sort replays in order of time",
		prose.Count(c.earlier, "request is", "requests are"), percent(c.earlier, c.requests.count), formatDuration(c.lag))
}

type ruleStats struct {
	*policy.Rule
	requests int64 // requests that matched the rule
	denied   span  // requests denied by the buckets of the rule
	shadowed bool  // some denials were only in shadow mode

	over [2]series // all and denied requests over time; nil before the first request
}

// The outcomes of a request in timelines.
const (
	passed = iota
	spared // allowed, but denied by a rule in shadow mode
	denied
	kinds
)

// Stats counts the decisions of a replay, in bounded memory. Create it with [NewStats]. It is not safe for
// concurrent use.
type Stats struct {
	counts
	policy *policy.Matcher
	rules  []*ruleStats
	byRule map[*policy.Rule]*ruleStats

	denied    span
	delayed   int64         // admitted with a delay
	longest   time.Duration // longest delay
	unlimited int64         // no rule matched
	lacking   int64         // denied because they lack an attribute of limit_keys
	blocked   int64         // blocked by an override
	excepted  int64         // allowed by an override

	over  [kinds]series // over time
	waits waits         // of denied requests

	estimates []*estimate // of limits that count the tokens of language models

	keys toplist
	id   []byte
}

func NewStats(m *policy.Matcher) *Stats {
	s := &Stats{counts: newCounts(), policy: m, byRule: map[*policy.Rule]*ruleStats{}, keys: newToplist()}
	for i := range s.over {
		s.over[i] = s.line.newSeries()
	}
	for _, r := range m.Rules() {
		stats := &ruleStats{Rule: r}
		s.rules = append(s.rules, stats)
		s.byRule[r] = stats
	}
	return s
}

// Count counts one request without its decision.
func (s *Stats) Count(req *trace.Request) { s.count(req.At) }

func (s *Stats) Add(req *trace.Request, d *mete.Decision) error {
	s.Count(req)
	if d.Wait > 0 {
		s.delayed++
		s.longest = max(s.longest, d.Wait)
	}
	if len(d.Limits())+len(d.Shadow) == 0 {
		s.addWithoutLimit(req, d)
	}
	s.addLimits(req, d.Limits(), false)
	kind := passed
	if s.addLimits(req, d.Shadow, true) {
		kind = spared
	}
	if !d.Allowed {
		s.denied.add(req.At)
		s.waits.add(d.RetryAfter)
		kind = denied
	}
	s.over[kind][s.line.binAt(req.At)]++
	return nil
}

// addWithoutLimit counts a decision without a bucket: no rule matched, an override decided, or the request lacks
// an attribute.
func (s *Stats) addWithoutLimit(req *trace.Request, d *mete.Decision) {
	switch {
	case d.Rule != "":
	case d.Override == nil:
		s.unlimited++
		return
	case d.Allowed:
		s.excepted++
		return
	default:
		s.blocked++
		return
	}
	s.lacking++
	for _, r := range s.rules {
		if r.Name == d.Rule {
			s.addTo(r, req)
			s.addDenial(req, r)
			return
		}
	}
}

// addLimits counts the limits of rules and reports whether any denied the request. Limits of one rule are
// adjacent.
func (s *Stats) addLimits(req *trace.Request, limits []mete.Status, shadow bool) (any bool) {
	for len(limits) > 0 {
		rule, denied, n := limits[0].Rule, false, 0
		for ; n < len(limits) && limits[n].Rule == rule; n++ {
			denied = denied || !limits[n].Allowed
		}
		r := s.statsOf(rule)
		s.addTo(r, req)
		if denied {
			any = true
			r.shadowed = r.shadowed || shadow
			s.addDenial(req, r)
		}
		limits = limits[n:]
	}
	return any
}

// addTo counts a request for a rule.
func (s *Stats) addTo(r *ruleStats, req *trace.Request) {
	if r.over[0] == nil {
		r.over[0] = s.sparks.newSeries()
	}
	r.requests++
	r.over[0][s.sparks.binAt(req.At)]++
}

// statsOf returns the statistics of a rule. The rule of an override shares the statistics of the policy's rule with the same name.
func (s *Stats) statsOf(rule *policy.Rule) *ruleStats {
	r, ok := s.byRule[rule]
	if !ok {
		i := slices.IndexFunc(s.rules, func(r *ruleStats) bool { return r.Name == rule.Name })
		if i < 0 {
			i = len(s.rules)
			s.rules = append(s.rules, &ruleStats{Rule: rule})
		}
		r = s.rules[i]
		s.byRule[rule] = r
	}
	return r
}

func (s *Stats) addDenial(req *trace.Request, r *ruleStats) {
	r.denied.add(req.At)
	if r.over[1] == nil {
		r.over[1] = s.sparks.newSeries()
	}
	r.over[1][s.sparks.binAt(req.At)]++
	s.id = appendKeyID(s.id[:0], req, r.Rule)
	if entry, isNew := s.keys.add(s.id, req.At); isNew {
		entry.rule, entry.key = r.Name, describeKey(req, r.Rule)
	}
}
