// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/metehq/mete/monitor"
)

// Totals returns the counts since the start. The counts are read one after another. Rules contains the rules of
// the policy, [OtherRules] and [NoRule].
func (r *Registry) Totals() monitor.Totals {
	s := monitor.Totals{Decisions: sumOf(r.latency.decision, decisionBuckets), Store: sumOf(r.latency.store, storeBuckets)}
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
	s.Rules = append(s.Rules, r.rules.none.totals(NoRule), r.rules.other.totals(OtherRules))
	if names := r.rules.names.Load(); names != nil {
		for name, c := range *names {
			s.Rules = append(s.Rules, c.totals(name))
		}
	}
	for i := range s.Rules {
		s.Shadow += s.Rules[i].Shadow
	}
	return s
}

func (c *ruleCount) totals(name string) monitor.RuleTotals {
	s := monitor.RuleTotals{Rule: name, Allowed: c.allowed.Load(), Denied: c.denied.Load(), Near: c.near.Load()}
	for i := range c.shadow {
		s.Shadow += c.shadow[i].Load()
	}
	for i := range c.degraded {
		s.Degraded += c.degraded[i].Load()
	}
	return s
}

func valueOf(c prometheus.Counter) uint64 {
	var m dto.Metric
	if c.Write(&m) != nil {
		return 0
	}
	return uint64(m.GetCounter().GetValue())
}

// sumOf adds the histograms of all labels.
func sumOf(v *prometheus.HistogramVec, bounds []float64) monitor.Histogram {
	h := monitor.Histogram{Bounds: bounds, Counts: make([]uint64, len(bounds)+1)}
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
