// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/metehq/mete/policy"
)

// actions are those of overrides that are for some requests.
var actions = []policy.Action{policy.Block, policy.Allow, policy.Another}

// overrides shows how many are in force, by their action.
func (w writer) overrides(n map[policy.Action]int) {
	d := prometheus.NewDesc("mete_overrides_in_force", "Overrides in force, those of the policy included, by what they do.", []string{"action"}, nil)
	for _, a := range actions {
		w.to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n[a]), string(a))
	}
	w.gauge("mete_policy_global_shadow", "1 while an override keeps rules from denying anything: for all requests, or for some.", float64(min(n[policy.ShadowOnly], 1)))
	w.gauge("mete_break_glass", "1 while an override lets everything pass.", float64(min(n[policy.BreakGlass], 1)))
}
