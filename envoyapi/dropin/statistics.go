// SPDX-License-Identifier: Apache-2.0

package dropin

import "math"

// countStatistics adds the hits of a request to the counters of their limits, as the reference server does: hits above
// the limit are over, and the hits between the near limit and the limit are near.
func (c *call) countStatistics(nearRatio float32) {
	for i := range c.hits {
		h := &c.hits[i]
		if h.rule == nil || h.rule.unlimited {
			continue
		}
		if h.negative {
			h.counters.negative.Add(h.hits)
			continue
		}
		h.counters.total.Add(h.hits)
		near := uint64(math.Floor(float64(float32(h.limit) * nearRatio)))
		switch {
		case h.over:
			h.countOver(near)
		case h.after <= near:
			h.counters.within.Add(h.hits)
		default:
			h.counters.within.Add(h.hits)
			if h.before >= near {
				h.counters.near.Add(h.hits)
			} else {
				h.counters.near.Add(h.after - near)
			}
		}
	}
}

func (h *hit) countOver(near uint64) {
	over := h.hits
	if h.before < h.limit {
		over = h.after - h.limit
		h.counters.near.Add(h.limit - max(near, h.before))
	}
	h.counters.over.Add(over)
	if h.rule.shadow {
		h.counters.shadow.Add(over)
	}
}
