// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// A Snapshot is what has been counted of decisions since the start, for those who do
// not read metrics as Prometheus does.
type Snapshot struct {
	Allowed, Denied, Degraded uint64
	Rules                     []RuleSnapshot // those of the policy, [OtherRules] and [NoRule]
	Decisions, Store          Histogram
}

// A RuleSnapshot is what one rule did. Shadow has what it would have denied, for
// whatever reason it did not.
type RuleSnapshot struct {
	Rule                                    string
	Allowed, Denied, Shadow, Near, Degraded uint64
}

// A Histogram counts durations: Counts[i] are those up to Bounds[i], in seconds, that
// are in no earlier one, and the last those beyond all bounds.
type Histogram struct {
	Bounds []float64
	Counts []uint64
}

// Snapshot returns the counts as they are, not all of one instant.
func (r *Registry) Snapshot() Snapshot {
	s := Snapshot{Decisions: sumOf(r.latency.decision, decisionBuckets), Store: sumOf(r.latency.store, storeBuckets)}
	for allowed := range r.decisions {
		for by, c := range r.decisions[allowed] {
			n := valueOf(c)
			if by != byStore {
				s.Degraded += n
			}
			if allowed == 1 {
				s.Allowed += n
			} else {
				s.Denied += n
			}
		}
	}
	s.Rules = append(s.Rules, r.rules.none.snapshot(NoRule), r.rules.other.snapshot(OtherRules))
	if names := r.rules.names.Load(); names != nil {
		for name, c := range *names {
			s.Rules = append(s.Rules, c.snapshot(name))
		}
	}
	return s
}

func (c *ruleCount) snapshot(name string) RuleSnapshot {
	s := RuleSnapshot{Rule: name, Allowed: c.allowed.Load(), Denied: c.denied.Load(), Near: c.near.Load()}
	for i := range c.shadow {
		s.Shadow += c.shadow[i].Load()
	}
	for i := range c.degraded {
		s.Degraded += c.degraded[i].Load()
	}
	return s
}

// valueOf reads a counter.
func valueOf(c prometheus.Counter) uint64 {
	var m dto.Metric
	if c.Write(&m) != nil {
		return 0
	}
	return uint64(m.GetCounter().GetValue())
}

// sumOf adds up the histograms of all labels, which have the same bounds.
func sumOf(v *prometheus.HistogramVec, bounds []float64) Histogram {
	h := Histogram{Bounds: bounds, Counts: make([]uint64, len(bounds)+1)}
	all := make(chan prometheus.Metric, 16)
	go func() {
		defer close(all)
		v.Collect(all)
	}()
	for m := range all {
		var read dto.Metric
		if m.Write(&read) != nil {
			continue
		}
		before := uint64(0)
		for i, b := range read.GetHistogram().GetBucket() {
			if i < len(bounds) {
				h.Counts[i] += b.GetCumulativeCount() - before
				before = b.GetCumulativeCount()
			}
		}
		h.Counts[len(bounds)] += read.GetHistogram().GetSampleCount() - before
	}
	return h
}
