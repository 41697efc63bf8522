// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/metehq/mete/policy"
)

// ownGauges are the metrics of actions that alerts watch: 1 while such an override is active.
var ownGauges = map[policy.Action]struct{ name, help string }{
	policy.ActionShadow:     {"mete_policy_global_shadow", "1 while an override keeps rules from denying anything: for all requests, or for some."},
	policy.ActionBreakGlass: {"mete_break_glass", "1 while an override lets everything pass."},
}

// overrides shows how many are in force, by their action.
func (w writer) overrides(n map[policy.Action]int) {
	d := prometheus.NewDesc("mete_overrides_in_force", "Overrides in force, those of the policy included, by what they do.", []string{"action"}, nil)
	for _, kind := range policy.Actions() {
		a := kind.Action
		if own, ok := ownGauges[a]; ok {
			w.gauge(own.name, own.help, float64(min(n[a], 1)))
			continue
		}
		w.to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n[a]), string(a))
	}
}
